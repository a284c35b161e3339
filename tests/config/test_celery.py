"""The worker's connection heals by itself."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection

from ledger.models import Pulse
from ledger.tasks import sweep


@pytest.mark.django_db(transaction=True)
def test_the_first_task_after_a_broken_connection_does_its_work() -> None:
    connection.set_autocommit(True)
    for _ in range(2):
        cut(connection.connection.info.backend_pid)
        sweep.apply().get()
    assert Pulse.objects.filter(name="sweep").exists()


def cut(backend: int) -> None:
    """The server ends this connection, as it does when it restarts."""
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])
