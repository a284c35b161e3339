"""What `up` holds before it starts anything."""

import os

import psycopg
import pytest

from ledger.management.local.stack import MIGRATION_LOCK, migration_lock

HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s"


class Waited(Exception):
    """The lock was not free."""


def refuse_to_wait() -> None:
    raise Waited


def test_one_machine_migrates_at_a_time() -> None:
    url = os.environ["DATABASE_URL"]
    with migration_lock(url, wait=refuse_to_wait), psycopg.connect(url) as other:
        assert other.execute(HELD, [MIGRATION_LOCK]).fetchone() == (1,)
        with pytest.raises(Waited), migration_lock(url, wait=refuse_to_wait):
            pass
    with migration_lock(url, wait=refuse_to_wait):
        pass
