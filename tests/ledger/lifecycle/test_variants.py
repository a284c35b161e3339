"""Several attempts of one operation that were never sent: one of them at a time may become live."""

from __future__ import annotations

import pytest
from django.db import connection

from ledger import lifecycle
from ledger.lifecycle import DecisionRefused, LeaveGiven, LeaveProblem, LeaveRefused
from ledger.models import Attempt, User
from ledger.reconciliation import sweep_once
from ledger.rules.directive import Directive
from ledger.rules.states import State
from ledger.transactions import durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

OTHER = {"to": "eve@example.org", "subject": "x"}


@pytest.fixture
def people() -> Cast:
    return cast()


def approve(attempt: Attempt, by: User) -> Attempt:
    durable(lambda: lifecycle.approve(item_id=make.item_of(attempt).pk, by=by, why="checked"))
    return make.fresh(attempt)


def expire_approvals() -> None:
    """Their time is over; the database keeps it fixed, so it is moved past the triggers."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE ledger_approval SET expires_at = expires_at - interval '1 day'")
        cursor.execute("SET LOCAL session_replication_role = origin")
    sweep_once()


def test_an_approved_variant_keeps_the_first_from_being_approved_beside_it(people: Cast) -> None:
    first = make.held(people.key, operation_key="k")
    variant = approve(make.variant(people.key, first, {"version": "other"}), people.approver)
    assert variant.state == State.INTENT_RECORDED
    with pytest.raises(DecisionRefused) as refused:
        approve(first, people.approver)
    assert refused.value.code == "other-attempt-live"
    assert make.fresh(first).is_held


def test_an_approved_first_gives_way_to_the_variant(people: Cast) -> None:
    first = approve(make.held(people.key, operation_key="k"), people.approver)
    variant = make.variant(people.key, first, {"version": "other"})
    assert approve(variant, people.approver).state == State.INTENT_RECORDED
    assert make.fresh(first).state == State.SUPERSEDED
    assert not first.approvals.filter(voided_at=None).exists()


def test_a_variant_whose_approval_expired_is_still_the_one_held(people: Cast) -> None:
    first = make.recorded(people.key, operation_key="k")
    variant = approve(make.variant(people.key, first, OTHER), people.approver)
    expire_approvals()
    assert make.fresh(variant).is_held
    assert make.variant(people.key, first, {"to": "third"}).pk == variant.pk
    assert first.operation.attempts.count() == 2


def test_an_agent_is_told_to_wait_while_a_variant_may_have_been_sent(people: Cast) -> None:
    first = make.recorded(people.key, make.TICKET, operation_key="k")
    variant = make.reported(people.key, make.variant(people.key, first, OTHER), "unknown")
    assert (variant.state, variant.reason) == (State.MANUAL_REVIEW, "sent_without_leave")
    answer = make.ask_leave(people.key, first)
    assert isinstance(answer, LeaveRefused)
    assert answer.problem is LeaveProblem.ON_HOLD
    assert answer.standing.directive is Directive.HOLD
    with pytest.raises(DecisionRefused) as refused:
        approve(variant, people.approver)
    assert refused.value.code == "other-attempt-live"


def test_once_decided_the_first_goes_on(people: Cast) -> None:
    first = make.recorded(people.key, operation_key="k")
    variant = make.reported(people.key, make.variant(people.key, first, OTHER), "unknown")
    item = make.item_of(variant)
    durable(lambda: lifecycle.confirm_did_not_happen(item_id=item.pk, by=people.operator, why="asked"))
    assert isinstance(make.ask_leave(people.key, first), LeaveGiven)
