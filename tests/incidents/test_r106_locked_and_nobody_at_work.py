"""R106: a sweep skips what is locked, although nobody works on it, and it is never submitted again.

Kind: work that waits because of a lock. What is locked is left to the next pass, keeps no other waiting, and
is found again by what it is, not by a place in a list; how long the most overdue work has waited is a number
that a monitor reads.

The report asks that a row skipped for too long raises "locked too long". Nothing here raises that: the number
(`ledger_overdue_seconds`) grows whatever keeps the work waiting, and a limit on it is the monitor's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import httpx
import psycopg
import pytest

from ledger.models import Attempt
from ledger.reconciliation import reconcile_once, send_once, sweep_once
from ledger.transactions import database_clock
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import OWN, Body, Scene
from tests.support.beside import database_url_of_tests


@contextmanager
def locked(table: str, key: str) -> Iterator[None]:
    """A long transaction of somebody else holds one row, and is rolled back at the end."""
    with psycopg.connect(database_url_of_tests()) as somebody:
        somebody.execute(f'SELECT 1 FROM "{table}" WHERE id = %s FOR UPDATE', [key])  # noqa: S608
        try:
            yield
        finally:
            somebody.rollback()


def overdue(scene: Scene, what: str) -> float:
    """How long the monitor is told that this has waited."""
    metrics = httpx.get(f"{scene.server.address}/metrics", trust_env=False).text
    found = re.search(rf'ledger_overdue_seconds{{what="{what}"}} (\S+)', metrics)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize("table", ["ledger_attempt", "ledger_operation"])
def test_a_locked_question_is_asked_in_the_next_pass(scene: Scene, table: str) -> None:
    first, second = scene.unknown("k1"), scene.unknown("k2")
    scene.time_passes()
    Attempt.objects.filter(pk=first["attempt_id"]).update(next_check_at=long_ago())
    with locked(table, first["attempt_id" if table == "ledger_attempt" else "operation_id"]):
        reconcile_once()
        assert scene.state(second) == "OUTCOME_CONFIRMED", "the others do not wait for it"
        assert scene.state(first) == "UNKNOWN"
        assert overdue(scene, "look_up") > 3000, "and somebody is told how long it has waited"
    reconcile_once()
    assert scene.state(first) == "OUTCOME_CONFIRMED"
    assert scene.all_effects() == 2
    nothing_else_went_wrong(scene)


def long_ago() -> datetime:
    """Due before everything else."""
    return database_clock() - timedelta(hours=1)


def ran_out(scene: Scene, leave: Body) -> None:
    Attempt.objects.filter(pk=leave["attempt_id"]).update(lease_until=long_ago())


def test_a_locked_lease_ends_in_the_next_pass_and_holds_up_no_other(scene: Scene) -> None:
    first, second = scene.dispatched("k1"), scene.dispatched("k2")
    scene.send(first)
    scene.send(second)
    ran_out(scene, first)
    Attempt.objects.filter(pk=second["attempt_id"]).update(lease_until=database_clock())
    with locked("ledger_operation", first["operation_id"]):
        assert sweep_once().leases == 1
        assert (scene.state(first), scene.state(second)) == ("DISPATCHED", "UNKNOWN")
        assert overdue(scene, "send_lease") > 3000
    assert sweep_once().leases == 1
    assert scene.state(first) == "UNKNOWN"
    assert scene.recover() == 2
    nothing_else_went_wrong(scene)


def test_a_locked_send_waits_and_the_others_are_sent(scene: Scene) -> None:
    first, second = scene.recorded("k1", OWN), scene.recorded("k2", OWN)
    with locked("ledger_operation", first["operation_id"]):
        send_once()
        assert (scene.state(first), scene.state(second)) == ("INTENT_RECORDED", "OUTCOME_CONFIRMED")
    scene.time_passes(3600)
    send_once()
    assert scene.state(first) == "OUTCOME_CONFIRMED"
    assert scene.all_effects() == 2
    nothing_else_went_wrong(scene)
