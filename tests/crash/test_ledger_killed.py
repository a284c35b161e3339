"""The ledger's own processes killed inside their work: all of it is there, or none, and another goes on."""

from __future__ import annotations

import signal

import pytest

from ledger.models import Approval, Attempt, Decision, Event, LookUp, Vote
from ledger.reconciliation import reconcile_once
from ledger.transactions import database_clock
from tests.crash.world import World
from tests.support import make

pytestmark = [pytest.mark.crash, pytest.mark.slow]


@pytest.mark.parametrize("point", ["reconciler.claimed", "reconciler.answered", "reconciler.before_commit"])
def test_a_reconciler_killed_in_its_work_is_followed_by_another(world: World, point: str) -> None:
    world.killed_while_sending("accept_then_hang")
    world.sweep_until("UNKNOWN")
    events = Event.objects.count()
    assert world.command("manage.py", "reconcile", "--once", dies_at=point) == -signal.SIGKILL
    attempt = world.newest
    assert (attempt.state, attempt.lookup_epoch, LookUp.objects.count()) == ("UNKNOWN", 1, 0)
    assert Event.objects.count() == events
    assert attempt.lookup_lease_until is not None
    assert reconcile_once().looked_up == 0, "the dead one's lease still holds"
    Attempt.objects.filter(pk=attempt.pk).update(lookup_lease_until=database_clock())
    assert world.command("manage.py", "reconcile", "--once") == 0
    assert (world.newest.state, world.newest.lookup_epoch) == ("OUTCOME_CONFIRMED", 2)
    assert (LookUp.objects.count(), world.operation.settlements.count(), world.effects) == (1, 1, 1)


def test_leave_killed_before_it_is_committed_never_was(world: World) -> None:
    attempt = make.recorded(world.people.key, "refund.create", args={"amount": 1}, run="r")
    events = Event.objects.count()
    key_id = world.people.key.key_id
    died = world.command(
        "-m", "tests.crash.press", "leave", key_id, attempt.pk, dies_at="leave.before_commit"
    )
    assert died == -signal.SIGKILL
    after = make.fresh(attempt)
    assert (after.state, after.dispatched_at, Event.objects.count()) == ("INTENT_RECORDED", None, events)
    assert world.operation.run is not None
    assert world.operation.run.accounts.get(unit="tool_calls").reserved == 0
    assert make.send(world.people.key, attempt).state == "DISPATCHED"


def test_an_approval_killed_before_it_is_committed_never_was(world: World) -> None:
    make.policy(world.people.tenant)
    attempt = make.held(world.people.key)
    item = make.item_of(attempt)
    died = world.command(
        "-m", "tests.crash.press", "approve", "approver", item.pk, dies_at="decision.before_commit"
    )
    assert died == -signal.SIGKILL
    assert make.fresh(attempt).is_held
    assert not any(model.objects.exists() for model in (Decision, Vote, Approval))
    assert world.command("-m", "tests.crash.press", "approve", "approver", item.pk) == 0
    assert make.fresh(attempt).state == "INTENT_RECORDED"
    assert Approval.objects.count() == 1
