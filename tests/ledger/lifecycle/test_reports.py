"""Reports that come without leave, or from a key that is no longer trusted."""

from __future__ import annotations

import pytest

from ledger.lifecycle import LeaveGiven, approve
from ledger.models import ApiKey, Attempt
from ledger.rules.states import State
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Cast:
    return cast()


def revoke(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=database_clock())


@pytest.mark.parametrize("outcome", ["unknown", "failed", "succeeded"])
def test_what_was_sent_without_leave_voids_the_approval_of_its_first_send(people: Cast, outcome: str) -> None:
    attempt = make.held(people.key)
    durable(lambda: approve(item_id=make.item_of(attempt).pk, by=people.approver, why="release it"))
    attempt = make.reported(people.key, attempt, outcome)
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, "sent_without_leave")
    assert attempt.approvals.get().void_cause
    assert not isinstance(make.ask_leave(people.key, attempt), LeaveGiven)


def test_what_a_revoked_key_said_may_be_said_again_by_a_live_one(people: Cast) -> None:
    attempt = make.dispatched(people.key, make.TICKET)
    revoke(people.key)
    attempt = make.reported(people.key, attempt, "succeeded", result_ref="tkt_1")
    assert attempt.state == State.UNKNOWN
    attempt = make.reported(make.key(people.agent), attempt, "succeeded", result_ref="tkt_1")
    assert (attempt.state, attempt.confirmed_by) == (State.OUTCOME_CONFIRMED, "agent")


def test_a_revoked_keys_report_is_stored_once_and_settles_nothing(people: Cast) -> None:
    attempt = make.unknown(people.key)
    revoke(people.key)
    before: Attempt = make.fresh(attempt)
    for _ in range(2):
        make.reported(people.key, attempt, "succeeded", result_ref="msg_1")
    after = make.fresh(attempt)
    assert (after.state, after.success_reported) == (before.state, False)
    told = after.events.filter(kind="attempt.outcome_reported")
    assert [event.data.get("by_revoked_key") for event in told.order_by("sequence")] == [
        None,
        people.key.key_id,
    ]


def test_leave_is_judged_by_the_key_as_it_is_now(people: Cast) -> None:
    attempt = make.recorded(people.key)
    revoke(people.key)
    assert people.key.revoked_at is None, "as its caller was authenticated"
    assert not isinstance(make.ask_leave(people.key, attempt), LeaveGiven)
