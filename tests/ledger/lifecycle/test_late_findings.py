"""Answers that come when the question is closed, or when another look-up holds the lease."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ledger import lifecycle
from ledger.lifecycle import LeaveGiven
from ledger.models import Attempt, LookUp, ReviewItem
from ledger.reconciliation import asking, claims
from ledger.rules.looked_up import LookedUp, LookedUpKind, Record
from ledger.rules.states import State
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

DONE = Record(reference="re_1", content="same", state="done")
PENDING = Record(reference="re_1", content="same", state="in_progress")


@pytest.fixture
def people() -> Cast:
    return cast()


def retryable(people: Cast) -> Attempt:
    """Contact was lost, a look-up began, and then the agent said that nothing had happened."""
    attempt = make.unknown(people.key)
    Attempt.objects.filter(pk=attempt.pk).update(lookup_epoch=2)
    declined = {"no_effect": True, "retryable": True, "error_class": "declined"}
    attempt = make.reported(people.key, attempt, "failed", **declined)
    assert attempt.state == State.FAILED_RETRYABLE
    return attempt


def answered(attempt: Attempt, epoch: int, *records: Record) -> Attempt:
    found = LookedUp(LookedUpKind.FOUND if records else LookedUpKind.ABSENT, records)
    durable(
        lambda: lifecycle.apply_answer(
            attempt_id=attempt.pk, epoch=epoch, asked_at=database_clock(), provider=None, looked_up=found
        )
    )
    return make.fresh(attempt)


def open_conflict(attempt: Attempt) -> bool:
    return ReviewItem.objects.filter(attempt=attempt, closed_at=None, reason="conflicting_evidence").exists()


def test_in_progress_there_contradicts_the_word_that_nothing_happened(people: Cast) -> None:
    attempt = answered(retryable(people), 2, PENDING)
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, "conflicting_evidence")
    assert not isinstance(make.ask_leave(people.key, attempt), LeaveGiven)


def test_a_zombies_finding_keeps_what_was_to_be_sent_again_from_being_sent(people: Cast) -> None:
    attempt = answered(retryable(people), 1, DONE)
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, "conflicting_evidence")
    assert LookUp.objects.get(attempt=attempt).row == "stale"


def test_a_zombies_absent_changes_nothing(people: Cast) -> None:
    attempt = retryable(people)
    after = answered(attempt, 1)
    assert (after.state, after.next_check_at) == (State.FAILED_RETRYABLE, attempt.next_check_at)
    assert not open_conflict(after)


@pytest.mark.parametrize("epoch", [1, 2], ids=["stale", "current"])
def test_a_finding_about_what_a_person_closed_is_a_conflict(people: Cast, epoch: int) -> None:
    attempt = make.unknown(people.key)
    Attempt.objects.filter(pk=attempt.pk).update(lookup_epoch=2)
    item = make.item_of(attempt)
    durable(lambda: lifecycle.confirm_did_not_happen(item_id=item.pk, by=people.operator, why="asked"))
    attempt = answered(attempt, epoch, DONE)
    assert attempt.state == State.FAILED
    assert open_conflict(attempt)


@pytest.mark.parametrize("epoch", [1, 2], ids=["stale", "current"])
def test_the_confirmed_effect_found_again_is_no_conflict(people: Cast, epoch: int) -> None:
    attempt = make.confirmed(people.key, result_ref="re_1")
    Attempt.objects.filter(pk=attempt.pk).update(lookup_epoch=2)
    assert not open_conflict(answered(attempt, epoch, DONE))


def test_a_record_of_an_earlier_attempt_does_not_contradict_a_later_one(people: Cast) -> None:
    first = make.unknown(people.key, make.TICKET, operation_key="k")
    make.reported(people.key, first, "unknown", provider_request_id="re_1")
    make.looked_up(first, LookedUpKind.NO_LOOKUP)
    durable(
        lambda: lifecycle.approve(item_id=make.item_of(first).pk, by=people.approver, why="send it again")
    )
    second = make.send(people.key, make.fresh(first))
    second = make.reported(people.key, second, "failed", no_effect=True, error_class="declined")
    assert second.state == State.FAILED
    assert not open_conflict(answered(second, second.lookup_epoch, DONE))


def test_a_zombies_finding_makes_a_new_look_up_due_at_the_desk_too(people: Cast) -> None:
    attempt = make.looked_up(make.unknown(people.key), LookedUpKind.FOUND, DONE, DONE_ELSEWHERE)
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, "several_matches")
    Attempt.objects.filter(pk=attempt.pk).update(lookup_epoch=2)
    attempt = answered(attempt, 1, DONE)
    assert attempt.state == State.MANUAL_REVIEW
    assert attempt.next_check_at is not None
    assert attempt.next_check_at <= database_clock()


@pytest.mark.parametrize("receipt", [{"provider_request_id": "req_1"}, {"result_ref": "msg_1"}])
def test_a_receipt_after_an_absent_stops_what_was_to_be_sent_again(
    people: Cast, receipt: dict[str, str]
) -> None:
    attempt = absent_for_good(people)
    attempt = make.reported(people.key, attempt, "unknown", **receipt)
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, "conflicting_evidence")
    assert not isinstance(make.ask_leave(people.key, attempt), LeaveGiven)


def test_so_does_the_request_id_alone(people: Cast) -> None:
    attempt = absent_for_good(people)
    durable(
        lambda: lifecycle.record_provider_request(
            key=people.key, attempt_id=attempt.pk, worker_id="worker-1", provider_request_id="req_1"
        )
    )
    assert make.fresh(attempt).reason == "conflicting_evidence"


def absent_for_good(people: Cast) -> Attempt:
    """Two spaced looks found nothing: it may be sent again."""
    attempt = make.looked_up(make.unknown(people.key), LookedUpKind.ABSENT)
    past = database_clock() - timedelta(minutes=2)
    Attempt.objects.filter(pk=attempt.pk).update(lease_ended_at=past, last_negative_at=past)
    attempt = make.looked_up(attempt, LookedUpKind.ABSENT)
    assert attempt.state == State.FAILED_RETRYABLE
    Attempt.objects.filter(pk=attempt.pk).update(send_again_at=None)
    return attempt


def test_a_closed_item_does_not_speak_for_a_later_question(people: Cast) -> None:
    attempt = absent_for_good(people)
    closed = make.item_of(attempt)
    stricter = {**make.TOOLS, make.MAIL: {**make.TOOLS[make.MAIL], "key_ttl_s": 600}}
    make.policy(people.tenant, by=people.admin, tools=stricter)
    make.ask_leave(people.key, attempt)
    assert make.item_of(attempt) != closed
    with pytest.raises(lifecycle.DecisionRefused, match="closed") as refused:
        durable(lambda: lifecycle.approve(item_id=closed.pk, by=people.approver, why="checked"))
    assert refused.value.code == "already-decided"
    assert not attempt.votes.exists()


def test_an_absent_heard_inside_the_settle_window_is_too_early_whenever_it_is_applied(people: Cast) -> None:
    attempt, asked_at = make.unknown(people.key), database_clock() - timedelta(seconds=60)
    Attempt.objects.filter(pk=attempt.pk).update(
        lease_ended_at=asked_at - timedelta(seconds=29),
        last_negative_at=asked_at - timedelta(seconds=10),
        negatives=1,
    )
    attempt = make.looked_up(attempt, LookedUpKind.ABSENT, asked_at=asked_at)
    assert (attempt.state, attempt.last_negative_at) == (State.UNKNOWN, asked_at)
    assert attempt.lookups.get().row == "absent_too_early"
    assert make.looked_up(attempt, LookedUpKind.ABSENT).state == State.FAILED_RETRYABLE


@pytest.mark.parametrize(("settled_s", "age_s"), [(-1, 0), (3_600, 301)], ids=["too early", "too old"])
def test_what_was_heard_is_no_newer_when_a_stopped_reconciler_applies_it(
    people: Cast, settled_s: int, age_s: int
) -> None:
    """`settled_s`: so long before it was asked for, the settle window was over."""
    attempt, now = make.unknown(people.key), database_clock()
    asked_at = now - timedelta(seconds=max(age_s, 60))
    over = asked_at - timedelta(seconds=settled_s)
    Attempt.objects.filter(pk=attempt.pk).update(lease_ended_at=over - timedelta(seconds=30))
    make.looked_up(attempt, LookedUpKind.ABSENT, asked_at=asked_at)
    item = make.item_of(attempt)
    with pytest.raises(lifecycle.DecisionRefused) as refused:
        durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="fine"))
    assert refused.value.code == "recheck-first"
    Attempt.objects.filter(pk=attempt.pk).update(negatives=0, last_negative_at=None)
    make.looked_up(attempt, LookedUpKind.ABSENT)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="fine"))


def test_a_look_up_under_way_does_not_speak_of_a_record_named_since(people: Cast) -> None:
    attempt = absent_so_far(people)
    claimed = Attempt.objects.filter(pk=attempt.pk)
    claimed.update(lookup_epoch=7, lookup_lease_until=database_clock() + timedelta(seconds=30))
    item = make.item_of(attempt)
    durable(
        lambda: lifecycle.relink_record(item_id=item.pk, by=people.operator, why="seen", reference="re_1")
    )
    attempt = answered(attempt, 7)
    assert (attempt.state, attempt.reason) == (State.UNKNOWN, "unknown")
    assert attempt.lookups.latest("answered_at").row == "stale"
    (lane,) = claims.due_lanes()
    (claim,) = claims.claim_in(lane)
    assert asking.question_about(claim.attempt).provider_request_id == "re_1"
    assert answered(attempt, claim.epoch, DONE).state == State.OUTCOME_CONFIRMED


def absent_so_far(people: Cast) -> Attempt:
    """One look found nothing, long ago; the next would decide."""
    attempt = make.looked_up(make.unknown(people.key), LookedUpKind.ABSENT)
    make.waited(Attempt.objects.filter(pk=attempt.pk))
    return make.fresh(attempt)


DONE_ELSEWHERE = Record(reference="re_2", content="same", state="done")
