"""The ledger's own sender killed at each of its boundaries: at most one effect, and it is found out."""

from __future__ import annotations

import signal

import pytest

from ledger.models import Attempt
from ledger.transactions import database_clock
from tests.crash.world import ARGS, REFUND, World
from tests.support import make
from tests.support.beside import start_command
from tests.support.processes import is_stopped, wait_until

pytestmark = [pytest.mark.crash, pytest.mark.slow]

WITHIN_S = 40.0


@pytest.fixture
def own(world: World) -> World:
    """The world, in which the ledger itself sends the refunds."""
    world.let_the_ledger_send()
    return world


def posted(world: World) -> Attempt:
    return make.recorded(world.people.key, REFUND, args=ARGS[REFUND], operation_key="the-operation")


def pass_of_recovery(world: World, dies_at: str = "") -> int:
    return world.command("manage.py", "reconcile", "--once", dies_at=dies_at)


BEFORE_IT_IS_SENT = ["sender.leave_committed", "sender.before_send"]
AFTER_IT_IS_SENT = ["sender.sent", "sender.before_commit"]


def test_killed_before_leave_is_committed_nothing_happened(own: World) -> None:
    posted(own)
    assert pass_of_recovery(own, dies_at="leave.before_commit") == -signal.SIGKILL
    assert (own.newest.state, own.effects) == ("INTENT_RECORDED", 0)
    assert pass_of_recovery(own) == 0
    assert (own.newest.state, own.effects) == ("OUTCOME_CONFIRMED", 1)


@pytest.mark.parametrize("point", BEFORE_IT_IS_SENT)
def test_killed_between_leave_and_sending_it_is_found_absent_and_sent_again(own: World, point: str) -> None:
    attempt = posted(own)
    assert pass_of_recovery(own, dies_at=point) == -signal.SIGKILL
    assert (own.newest.state, own.effects) == ("DISPATCHED", 0)
    own.sweep_until("UNKNOWN")
    own.reconcile_until("FAILED_RETRYABLE")
    own.end_back_off()
    assert pass_of_recovery(own) == 0
    newest = own.newest
    assert (newest.number, newest.state, newest.idempotency_key) == (
        2,
        "OUTCOME_CONFIRMED",
        attempt.idempotency_key,
    )
    assert own.effects == 1
    assert ("attempt.superseded", "sender") in own.history()


@pytest.mark.parametrize("point", AFTER_IT_IS_SENT)
def test_killed_after_sending_it_is_found_and_never_sent_again(own: World, point: str) -> None:
    posted(own)
    assert pass_of_recovery(own, dies_at=point) == -signal.SIGKILL
    assert (own.newest.state, own.effects) == ("DISPATCHED", 1)
    assert pass_of_recovery(own) == 0
    assert own.effects == 1
    own.sweep_until("UNKNOWN")
    own.reconcile_until("OUTCOME_CONFIRMED")
    assert pass_of_recovery(own) == 0
    newest = own.newest
    assert (newest.number, newest.confirmed_by, own.effects) == (1, "lookup", 1)
    assert len(own.provider.requests("POST")) == 1


def test_a_sender_stopped_beyond_its_lease_settles_nothing_when_it_comes_back(own: World) -> None:
    own.let_the_ledger_send(dispatch_timeout_s=4)
    posted(own)
    own.provider.set_mode("accept_then_hang", on="send", times=1)
    sender = start_command("reconcile", "--once")
    try:
        own.provider.wait_for_hanging(timeout=WITHIN_S)
        sender.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_stopped(sender.pid), within_s=10, what="the sender is stopped")
        Attempt.objects.filter(pk=own.newest.pk).update(lease_until=database_clock())
        own.sweep_until("UNKNOWN")
        own.reconcile_until("OUTCOME_CONFIRMED")
        events = len(own.history())
        own.provider.release()
        sender.send_signal(signal.SIGCONT)
        assert sender.wait(WITHIN_S) == 0
    finally:
        sender.kill()
    newest = own.newest
    assert (newest.state, newest.number, newest.confirmed_by, own.effects) == (
        "OUTCOME_CONFIRMED",
        1,
        "lookup",
        1,
    )
    assert own.history()[events:] == [("attempt.outcome_reported", "sender")]
