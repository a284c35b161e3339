"""What a page offers is what the verb allows, and for the same reason."""

from __future__ import annotations

import pytest
from django.db import connection

from ledger import lifecycle
from ledger.lifecycle import DecisionRefused
from ledger.models import Attempt
from ledger.rules.looked_up import LookedUpKind, Record
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

IN_PROGRESS = Record(reference="re_1", content="same", state="in_progress")
OTHER = Record(reference="re_2", content="other", state="done")


@pytest.fixture
def people() -> Cast:
    return cast()


def why_refused(attempt: Attempt, kind: DecisionKind) -> tuple[str, ...]:
    offers = {offer.kind: offer for offer in lifecycle.offers_for(make.item_of(attempt))}
    return offers[kind].refused


def test_nobody_says_it_did_not_happen_while_the_provider_has_it(people: Cast) -> None:
    attempt = make.looked_up(make.unknown(people.key), LookedUpKind.FOUND, IN_PROGRESS)
    item = make.item_of(attempt)
    assert why_refused(attempt, DecisionKind.CONFIRM_DID_NOT)[0].startswith(
        "The provider has re_1 (in progress)"
    )
    with pytest.raises(DecisionRefused) as refused:
        durable(lambda: lifecycle.confirm_did_not_happen(item_id=item.pk, by=people.operator, why="sure"))
    assert refused.value.code == "found-there"
    with pytest.raises(DecisionRefused) as refused:
        durable(lambda: lifecycle.reject(item_id=item.pk, by=people.operator, why="sure", what="did_not"))
    assert refused.value.code == "found-there"
    assert make.fresh(attempt).state == State.UNKNOWN


def test_a_record_with_other_content_leaves_it_to_the_person(people: Cast) -> None:
    attempt = make.looked_up(make.unknown(people.key), LookedUpKind.FOUND, OTHER)
    item = make.item_of(attempt)
    durable(lambda: lifecycle.confirm_did_not_happen(item_id=item.pk, by=people.operator, why="not ours"))
    assert make.fresh(attempt).state == State.FAILED


def sent_again(people: Cast, *, reference: str = "re_0") -> Attempt:
    """An attempt that contact was lost to, after an earlier one that failed and left this record there."""
    declined = {"no_effect": True, "retryable": True, "error_class": "declined"}
    first = make.reported(
        people.key, make.dispatched(people.key), "failed", provider_request_id=reference, **declined
    )
    Attempt.objects.filter(pk=first.pk).update(send_again_at=None)
    second = make.reported(people.key, make.send(people.key, first), "unknown")
    make.waited(Attempt.objects.filter(pk=second.pk))
    return second


def why_not_approved(attempt: Attempt) -> tuple[str, ...]:
    return why_refused(attempt, DecisionKind.APPROVE)


def test_an_absent_that_nobody_believes_lets_nobody_approve(people: Cast) -> None:
    """The look-up sees nothing at all, not even what is known to be there."""
    attempt = make.unknown(people.key)
    make.waited(Attempt.objects.filter(pk=attempt.pk))
    make.looked_up(attempt, LookedUpKind.ABSENT, canary_seen=True)
    assert why_not_approved(attempt) == ()
    make.looked_up(attempt, LookedUpKind.ABSENT, canary_seen=False)
    assert why_not_approved(attempt)[0].startswith("Re-check first")
    item = make.item_of(attempt)
    with pytest.raises(DecisionRefused) as refused:
        durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="fine"))
    assert refused.value.code == "recheck-first"


def test_no_leave_is_given_on_an_absent_that_nobody_believes(people: Cast) -> None:
    attempt = make.unknown(people.key)
    make.waited(Attempt.objects.filter(pk=attempt.pk))
    make.looked_up(attempt, LookedUpKind.ABSENT)
    item = make.item_of(attempt)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="fine"))
    make.looked_up(attempt, LookedUpKind.ABSENT, canary_seen=False)
    answer = make.ask_leave(people.key, attempt)
    assert isinstance(answer, lifecycle.LeaveRefused)
    assert answer.problem == lifecycle.LeaveProblem.IN_FLIGHT
    make.looked_up(attempt, LookedUpKind.ABSENT, canary_seen=True)
    assert isinstance(make.ask_leave(people.key, attempt), lifecycle.LeaveGiven)


def test_what_is_stored_before_anybody_asked_whether_to_believe_it_lets_nobody_approve(people: Cast) -> None:
    attempt = make.unknown(people.key)
    make.waited(Attempt.objects.filter(pk=attempt.pk))
    now = database_clock()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger_lookup"
            " (tenant_id, attempt_id, epoch, answered_at, answer, records, detail, row)"
            " VALUES (%s, %s, 0, %s, 'absent', '[]', '', 'absent')",
            [attempt.tenant_id, attempt.pk, now],
        )
    assert why_not_approved(attempt)[0].startswith("Re-check first")


def test_what_an_earlier_attempt_failed_with_keeps_nobody_from_approving(people: Cast) -> None:
    attempt = sent_again(people)
    failed = Record(reference="re_0", content="same", state="failed")
    make.looked_up(attempt, LookedUpKind.FOUND, failed)
    assert why_not_approved(attempt) == ()
    item = make.item_of(attempt)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="fine"))
    assert isinstance(make.ask_leave(people.key, attempt), lifecycle.LeaveGiven)


@pytest.mark.parametrize("state", ["done", "in_progress", "reversed"])
def test_a_name_that_an_earlier_attempt_had_hides_no_effect(people: Cast, state: str) -> None:
    """It may be the name of every send, as a mail's is: what happened under it is for a person."""
    attempt = sent_again(people)
    there = Record(reference="re_0", content="same", state=state)  # type: ignore[arg-type]
    for _ in range(2):
        attempt = make.looked_up(attempt, LookedUpKind.FOUND, there)
        assert why_not_approved(attempt) != ()
        make.waited(Attempt.objects.filter(pk=attempt.pk))
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, "conflicting_evidence")
    told_not_to = why_refused(attempt, DecisionKind.CONFIRM_DID_NOT)
    assert (told_not_to != ()) == (state != "reversed")


def test_the_record_of_a_confirmed_attempt_is_no_effect_of_a_later_one(people: Cast) -> None:
    attempt = sent_again(people)
    first = attempt.operation.attempts.get(number=1)
    first = make.reported(people.key, first, "succeeded", result_ref="re_0")
    durable(
        lambda: lifecycle.decide_conflict(
            item_id=make.item_of(first).pk,
            by=people.operator,
            why="seen",
            answer="happened",
            reference="re_0",
        )
    )
    done = Record(reference="re_0", content="same", state="done")
    attempt = make.looked_up(attempt, LookedUpKind.FOUND, done)
    assert why_refused(attempt, DecisionKind.CONFIRM_DID_NOT) == ()


def test_an_approval_that_waits_can_be_taken_back(people: Cast) -> None:
    attempt = make.held(people.key)
    item = make.item_of(attempt)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="fine"))
    assert why_refused(attempt, DecisionKind.REJECT) == ()
    durable(lambda: lifecycle.reject(item_id=item.pk, by=people.operator, why="not fine"))
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.failure) == (State.FAILED, "rejected")
    assert attempt.approvals.get().void_cause == "rejected"
    answer = make.ask_leave(people.key, attempt)
    assert isinstance(answer, lifecycle.LeaveRefused)


def test_a_tool_without_look_up_is_not_looked_up_again(people: Cast) -> None:
    attempt = make.for_a_person(people.key)
    item = make.item_of(attempt)
    for kind, verb in (
        (DecisionKind.RECHECK, lambda: lifecycle.recheck(item_id=item.pk, by=people.operator, why="x")),
        (
            DecisionKind.RELINK_RECORD,
            lambda: lifecycle.relink_record(item_id=item.pk, by=people.operator, why="x", reference="t_1"),
        ),
    ):
        assert why_refused(attempt, kind) == ("The tool has no look-up.",)
        with pytest.raises(DecisionRefused) as refused:
            durable(verb)
        assert refused.value.code == "no-lookup"
