"""The main ways an attempt goes, verb by verb."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pgtrigger
import pytest

from ledger import lifecycle
from ledger.lifecycle import IntentKind, LeaveGiven, LeaveProblem, LeaveRefused
from ledger.lifecycle.timers import end_approval
from ledger.models import ApiKey, Attempt, LookUp, ReviewItem, Settlement, User
from ledger.queries.invariants import findings
from ledger.rules.directive import Directive
from ledger.rules.looked_up import LookedUp, LookedUpKind, Record
from ledger.rules.states import State
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

DONE = Record(reference="re_1", content="same", state="done")


@pytest.fixture
def people() -> Cast:
    return cast()


def kinds(attempt: Attempt) -> list[str]:
    return [event.kind for event in attempt.operation.events.order_by("sequence")]


def later(attempt: Attempt, seconds: float) -> None:
    """Let time pass for the recovery of one attempt: what was is moved into the past."""
    past = timedelta(seconds=seconds)
    row = Attempt.objects.get(pk=attempt.pk)
    Attempt.objects.filter(pk=row.pk).update(
        lease_ended_at=row.lease_ended_at and row.lease_ended_at - past,
        last_negative_at=row.last_negative_at and row.last_negative_at - past,
    )


def absent_twice(attempt: Attempt) -> Attempt:
    make.looked_up(attempt, LookedUpKind.ABSENT)
    later(attempt, 60)
    return make.looked_up(attempt, LookedUpKind.ABSENT)


def vote(item: ReviewItem, *people: User) -> None:
    for person in people:
        durable(partial(lifecycle.approve, item_id=item.pk, by=person, why="checked"))


def test_a_receipt_confirms_and_settles(people: Cast) -> None:
    attempt = make.confirmed(people.key, result_ref="msg_1")
    assert attempt.state == State.OUTCOME_CONFIRMED
    assert attempt.confirmed_by == "agent"
    assert kinds(attempt) == [
        "attempt.intent",
        "attempt.dispatched",
        "attempt.outcome_reported",
        "attempt.confirmed",
        "operation.settled",
    ]
    settlement = Settlement.objects.get(operation=attempt.operation)
    assert (settlement.number, settlement.outcome) == (1, "confirmed")


def test_the_same_intent_again_is_the_same_attempt(people: Cast) -> None:
    intent = make.intent_of(operation_key="k")
    first, again = make.posted(people.key, intent), make.posted(people.key, intent)
    assert (first.kind, again.kind) == (IntentKind.CREATED, IntentKind.REPLAYED)
    assert first.standing is not None
    assert again.standing is not None
    assert first.standing.attempt.pk == again.standing.attempt.pk
    assert again.standing.directive is Directive.DISPATCH


def test_other_arguments_are_held_once_beside_the_first(people: Cast) -> None:
    attempt = make.dispatched(people.key, operation_key="k")
    variant = make.variant(people.key, attempt, {"to": "eve@example.org", "subject": "x"})
    again = make.posted(people.key, make.intent_of(args={"to": "third"}, operation_key="k"))
    assert again.kind is IntentKind.KEY_REUSED
    assert again.standing is not None
    assert again.standing.attempt.pk == variant.pk
    assert variant.is_held
    assert variant.reason == "arguments_changed"
    assert attempt.operation.attempts.count() == 2
    with pytest.raises(lifecycle.DecisionRefused) as refused:
        vote(make.item_of(variant), people.approver)
    assert refused.value.code == "other-attempt-live"


def test_absent_and_idempotent_is_sent_again_under_the_same_key(people: Cast) -> None:
    attempt = absent_twice(make.unknown(people.key, make.MAIL))
    assert attempt.state == State.FAILED_RETRYABLE
    early = make.ask_leave(people.key, attempt)
    assert isinstance(early, LeaveRefused)
    assert early.problem is LeaveProblem.IN_FLIGHT
    Attempt.objects.filter(pk=attempt.pk).update(send_again_at=database_clock())
    given = make.ask_leave(people.key, attempt)
    assert isinstance(given, LeaveGiven)
    assert given.attempt.number == 2
    assert given.attempt.idempotency_key == attempt.idempotency_key
    assert make.fresh(attempt).state == State.SUPERSEDED


def test_found_is_reconciled(people: Cast) -> None:
    attempt = make.looked_up(make.unknown(people.key), LookedUpKind.FOUND, DONE)
    assert (attempt.state, attempt.confirmed_by, attempt.result_ref) == (
        "OUTCOME_CONFIRMED",
        "lookup",
        "re_1",
    )
    assert not ReviewItem.objects.filter(attempt=attempt, closed_at=None).exists()


def test_no_lookup_goes_to_a_person_who_approves_once(people: Cast) -> None:
    attempt = make.for_a_person(people.key)
    item = make.item_of(attempt)
    assert (attempt.state, item.reason, item.owner_group.name) == (
        "MANUAL_REVIEW",
        "no_lookup",
        "Review desk",
    )
    refused = make.ask_leave(people.key, attempt)
    assert isinstance(refused, LeaveRefused)
    assert refused.problem is LeaveProblem.ON_HOLD
    vote(item, people.approver)
    given = make.ask_leave(people.key, attempt)
    assert isinstance(given, LeaveGiven)
    assert given.attempt.number == 2
    again = make.ask_leave(people.key, attempt)
    assert isinstance(again, LeaveRefused)
    assert again.problem is LeaveProblem.IN_FLIGHT


def test_a_success_before_leave_voids_the_approval(people: Cast) -> None:
    attempt = make.for_a_person(people.key)
    vote(make.item_of(attempt), people.approver)
    attempt = make.reported(people.key, attempt, "succeeded", result_ref="t_1")
    assert attempt.state == State.OUTCOME_CONFIRMED
    assert attempt.approvals.get().void_cause
    answer = make.ask_leave(people.key, attempt)
    assert isinstance(answer, LeaveRefused)
    assert answer.problem is LeaveProblem.ALREADY_DONE


def test_an_approval_that_expires_lets_no_receipt_settle_what_has_other_content(people: Cast) -> None:
    attempt = make.dispatched(people.key, make.TICKET)
    attempt = make.reported(
        people.key, attempt, "succeeded", result_ref="t_1", args_hash="v1:sha256:" + "0" * 64
    )
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "hash_mismatch")
    vote(make.item_of(attempt), people.approver)
    with pgtrigger.ignore():  # its end is fixed: here it passes
        attempt.approvals.update(expires_at=database_clock())
    durable(partial(end_approval, attempt_id=attempt.pk))
    assert make.fresh(attempt).reason == "hash_mismatch"
    assert make.reported(people.key, attempt, "succeeded", result_ref="t_2").state == State.MANUAL_REVIEW


def test_a_held_first_send_needs_its_approval(people: Cast) -> None:
    attempt = make.held(people.key)
    item = make.item_of(attempt)
    assert item.reason == "approval_required"
    vote(item, people.approver)
    attempt = make.fresh(attempt)
    assert attempt.state == State.INTENT_RECORDED
    assert make.send(people.key, attempt).state == State.DISPATCHED
    assert make.fresh(attempt).approval_use.approval.used_at is not None


@pytest.mark.parametrize("thing", ["key", "tenant", "policy", "policy_refuses"])
def test_leave_refuses_what_is_no_longer_authorised(people: Cast, thing: str) -> None:
    attempt = make.for_a_person(people.key)
    vote(make.item_of(attempt), people.approver)
    now = database_clock()
    if thing == "key":
        people.key.revoked_at = now
        people.key.save()
    elif thing == "tenant":
        people.tenant.suspended_at = now
        people.tenant.save()
    elif thing == "policy":
        make.policy(people.tenant, tools={**make.TOOLS, make.TICKET: {"effect": "write", "approvals": 2}})
    else:
        make.policy(people.tenant, tools={make.MAIL: make.TOOLS[make.MAIL]})
    expected = {
        "key": "key-revoked",
        "tenant": "tenant-suspended",
        "policy": "approval-stale",
        "policy_refuses": "policy-refused",
    }
    answer = make.ask_leave(make_key(people), attempt)
    assert isinstance(answer, LeaveRefused)
    assert answer.problem is LeaveProblem.NOT_AUTHORISED
    assert answer.reasons[0] == expected[thing]
    assert make.fresh(attempt).state == State.MANUAL_REVIEW


def make_key(people: Cast) -> ApiKey:
    return ApiKey.objects.select_related("agent__owner", "agent__tenant").get(pk=people.key.pk)


@pytest.mark.parametrize(("retryable", "then"), [(True, State.SUPERSEDED), (False, State.FAILED)])
def test_a_correction_is_sent_although_what_it_corrects_was_sent_again_before(
    people: Cast, retryable: bool, then: State
) -> None:
    """The agent, which knows the first arguments only, is told to come for the corrected ones."""
    first = make.for_a_person(people.key)
    correction = make.corrected(first, people.operator, {"title": "Printer in room 2"})
    vote(make.item_of(first), people.approver)
    again = make.send(people.key, first)
    make.reported(people.key, again, "failed", no_effect=True, retryable=retryable, error_class="refused")
    vote(make.item_of(correction), people.approver)
    assert (make.fresh(again).state, make.fresh(correction).state) == (then, State.INTENT_RECORDED)
    answer = make.posted(people.key, make.intent_of(make.TICKET, operation_key=first.operation.operation_key))
    assert answer.standing is not None
    assert (answer.standing.attempt, answer.standing.directive) == (correction, "dispatch")
    told = make.ask_leave(people.key, again)
    assert isinstance(told, LeaveRefused)
    assert told.problem is LeaveProblem.ARGS_CHANGED
    assert isinstance(make.ask_leave(people.key, make.fresh(correction)), LeaveGiven)


def test_relinked_arguments_are_what_leave_carries(people: Cast) -> None:
    attempt = make.held(people.key)
    successor = make.corrected(attempt, people.operator, {"version": "2026.12"})
    assert make.fresh(attempt).state == State.SUPERSEDED
    vote(make.item_of(successor), people.approver)
    answer = make.ask_leave(people.key, attempt)
    assert isinstance(answer, LeaveRefused)
    assert answer.problem is LeaveProblem.ARGS_CHANGED
    given = make.ask_leave(people.key, make.fresh(successor))
    assert isinstance(given, LeaveGiven)
    assert given.attempt.pk == successor.pk


def test_a_conflict_is_decided_by_a_person(people: Cast) -> None:
    attempt = make.unknown(people.key)
    item = make.item_of(attempt)
    durable(lambda: lifecycle.confirm_did_not_happen(item_id=item.pk, by=people.operator, why="asked"))
    attempt = make.reported(people.key, attempt, "succeeded", result_ref="m_9")
    assert attempt.state == State.FAILED
    conflict = make.item_of(attempt)
    assert conflict.reason == "conflicting_evidence"
    assert conflict.closed_at is None
    durable(
        lambda: lifecycle.decide_conflict(
            item_id=conflict.pk, by=people.operator, why="seen there", answer="happened", reference="m_9"
        )
    )
    assert make.fresh(attempt).state == State.OUTCOME_CONFIRMED
    assert [s.outcome for s in attempt.operation.settlements.order_by("number")] == ["failed", "confirmed"]


def test_a_stale_epoch_settles_nothing(people: Cast) -> None:
    attempt = make.unknown(people.key)
    Attempt.objects.filter(pk=attempt.pk).update(lookup_epoch=3)
    answer = durable(
        lambda: lifecycle.apply_answer(
            attempt_id=attempt.pk,
            epoch=2,
            asked_at=database_clock(),
            provider=None,
            looked_up=LookedUp(LookedUpKind.FOUND, (DONE,)),
        )
    )
    assert answer is None
    assert make.fresh(attempt).state == State.UNKNOWN
    assert LookUp.objects.get(attempt=attempt).row == "stale"


def test_cancelled_is_never_sent_again(people: Cast) -> None:
    attempt = absent_twice(make.cancelled(people.key, make.unknown(people.key)))
    assert (attempt.state, attempt.failure) == ("FAILED", "cancelled")


def test_cancelled_while_people_decide_whether_to_send_it_is_found_out(people: Cast) -> None:
    """Their question is answered; what is left is whether it happened, and that is looked up."""
    rule = {**make.TOOLS[make.MAIL], "review": "always"}
    make.policy(people.tenant, tools={**make.TOOLS, make.MAIL: rule})
    held = make.recorded(people.key)
    vote(make.item_of(held), people.approver)
    attempt = absent_twice(make.reported(people.key, make.send(people.key, held), "unknown"))
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "approval_required")
    attempt = make.cancelled(people.key, attempt)
    assert (attempt.state, attempt.next_check_at is not None) == ("UNKNOWN", True)
    attempt = make.looked_up(attempt, LookedUpKind.ABSENT)
    assert (attempt.state, attempt.failure) == ("FAILED", "cancelled")
    assert attempt.operation.outcome == "failed"


def test_cancelled_while_people_decide_and_known_not_to_have_happened_it_is_over(people: Cast) -> None:
    rule = {**make.TOOLS[make.TICKET], "review": "always"}
    make.policy(people.tenant, tools={**make.TOOLS, make.TICKET: rule})
    held = make.recorded(people.key, make.TICKET)
    vote(make.item_of(held), people.approver)
    refused = {"no_effect": True, "retryable": True, "error_class": "refused"}
    attempt = make.reported(people.key, make.send(people.key, held), "failed", **refused)
    Attempt.objects.filter(pk=attempt.pk).update(send_again_at=None)
    assert not isinstance(make.ask_leave(people.key, make.fresh(attempt)), LeaveGiven)
    assert make.fresh(attempt).reason == "approval_required"
    attempt = make.cancelled(people.key, attempt)
    assert (attempt.state, attempt.failure, attempt.failed_by) == ("FAILED", "cancelled", "agent")


def test_a_read_that_is_cancelled_ends_by_having_nothing_to_duplicate(people: Cast) -> None:
    make.policy(people.tenant, tools={"report.read": {"effect": "read"}})
    lost = make.reported(
        people.key, make.dispatched(people.key, "report.read", args={"of": "may"}), "unknown"
    )
    attempt = make.looked_up(make.cancelled(people.key, lost), LookedUpKind.NO_LOOKUP)
    assert (attempt.state, attempt.failure, attempt.failed_by) == ("FAILED", "cancelled", "lookup")
    assert list(findings()) == []


def test_a_read_that_people_see_first_can_be_approved_again(people: Cast) -> None:
    """It has a provider to be sent through, but nobody asks that about a read."""
    rule = {"effect": "read", "provider": "bank", "review": "always"}
    make.policy(people.tenant, tools={"report.read": rule})
    held = make.recorded(people.key, "report.read", args={"of": "may"})
    vote(make.item_of(held), people.approver)
    lost = make.reported(people.key, make.send(people.key, held), "unknown")
    attempt = make.looked_up(lost, LookedUpKind.NO_LOOKUP)
    assert attempt.state == State.FAILED_RETRYABLE
    Attempt.objects.filter(pk=attempt.pk).update(send_again_at=None)
    assert not isinstance(make.ask_leave(people.key, make.fresh(attempt)), LeaveGiven)
    vote(make.item_of(attempt), people.approver)
    assert isinstance(make.ask_leave(people.key, make.fresh(attempt)), LeaveGiven)


def test_two_people_for_a_payment(people: Cast) -> None:
    attempt = make.unknown(people.key, make.REFUND)
    make.looked_up(attempt, LookedUpKind.ABSENT)
    later(attempt, 60)
    item = make.item_of(attempt)
    make.looked_up(attempt, LookedUpKind.UNAVAILABLE)
    with pytest.raises(lifecycle.DecisionRefused) as refused:
        vote(item, people.approver)
    assert refused.value.code == "recheck-first"
    Attempt.objects.filter(pk=attempt.pk).update(negatives=0, last_negative_at=None)
    make.looked_up(attempt, LookedUpKind.ABSENT)
    vote(item, people.approver)
    assert not attempt.approvals.exists()
    vote(item, people.second_approver)
    assert attempt.approvals.count() == 1


def test_the_owner_of_the_agent_may_not_approve(people: Cast) -> None:
    attempt = make.for_a_person(people.key)
    with pytest.raises(lifecycle.DecisionRefused) as refused:
        vote(make.item_of(attempt), people.owner)
    assert refused.value.code == "separation-of-duties"
