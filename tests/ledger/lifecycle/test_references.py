"""Which references name the same effect, and which are a second one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ledger import lifecycle
from ledger.models import ApiKey, Attempt, LookUp
from ledger.rules.looked_up import LookedUpKind, Record
from ledger.rules.states import State
from ledger.transactions import durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Cast:
    return cast()


def name_request(by: ApiKey, attempt: Attempt, name: str) -> Attempt:
    durable(
        lambda: lifecycle.record_provider_request(
            key=by, attempt_id=attempt.pk, worker_id="worker-1", provider_request_id=name
        )
    )
    return make.fresh(attempt)


def test_a_result_may_have_another_name_than_its_request(people: Cast) -> None:
    attempt = name_request(people.key, make.dispatched(people.key), "req_1")
    attempt = make.reported(people.key, attempt, "succeeded", result_ref="msg_1")
    assert attempt.state == State.OUTCOME_CONFIRMED
    assert (attempt.provider_request_id, attempt.result_ref) == ("req_1", "msg_1")


@pytest.mark.parametrize("outcome", ["succeeded", "unknown"])
def test_a_second_request_id_is_for_a_person(people: Cast, outcome: str) -> None:
    attempt = name_request(people.key, make.dispatched(people.key), "req_1")
    attempt = make.reported(people.key, attempt, outcome, provider_request_id="req_2")
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, "conflicting_evidence")
    assert attempt.provider_request_id == "req_1"


def in_conflict(people: Cast, **report: str) -> tuple[Attempt, Attempt]:
    """A first attempt that was replaced, and then reported as a success; and its successor in flight."""
    first, second = make.replaced(people.key)
    first = make.reported(people.key, first, "succeeded", **report)
    assert (first.state, make.item_of(first).reason) == (State.SUPERSEDED, "conflicting_evidence")
    return first, second


def test_a_conflict_whose_reference_later_confirms_is_over(people: Cast) -> None:
    first, second = in_conflict(people, result_ref="msg_1")
    second = make.reported(people.key, second, "succeeded", result_ref="msg_1")
    assert second.state == State.OUTCOME_CONFIRMED
    assert make.item_of(first).closed_how == "same_effect"


@pytest.mark.parametrize("report", [{"result_ref": "msg_1"}, {}])
def test_a_conflict_about_another_effect_stays_open(people: Cast, report: dict[str, str]) -> None:
    """One that nobody named may be another one too."""
    first, second = in_conflict(people, **report)
    second = make.reported(people.key, second, "succeeded", result_ref="msg_2")
    assert second.state == State.OUTCOME_CONFIRMED
    assert make.item_of(first).closed_at is None


def test_a_conflict_closes_only_when_all_it_names_is_confirmed(people: Cast) -> None:
    first, second = in_conflict(people, result_ref="msg_1")
    make.reported(people.key, first, "succeeded", result_ref="msg_3")
    make.reported(people.key, second, "succeeded", result_ref="msg_1")
    assert make.item_of(first).closed_at is None


def test_the_successor_in_flight_may_report_the_very_effect_that_is_confirmed(people: Cast) -> None:
    first, second = in_conflict(people, result_ref="msg_1")
    durable(
        lambda: lifecycle.decide_conflict(
            item_id=make.item_of(first).pk,
            by=people.operator,
            why="found it",
            answer="happened",
            reference="msg_1",
        )
    )
    assert make.fresh(second).state == State.DISPATCHED
    assert make.reported(people.key, second, "succeeded", result_ref="msg_1").state == State.SUPERSEDED


FAILED = Record(reference="ch_1", content="same", state="failed")
DONE = Record(reference="ch_2", content="same", state="done")


def corrected(people: Cast, first: Attempt) -> Attempt:
    """Its arguments are corrected, and when the first attempt has failed, the second is sent and lost."""
    args = {**make.ARGS[make.MAIL], "subject": "Invoice 8"}
    second = make.corrected(first, people.operator, args)
    assert make.looked_up(first, LookedUpKind.FOUND, FAILED).state == State.FAILED
    item = make.item_of(second)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="better"))
    return make.reported(people.key, make.send(people.key, second), "unknown")


def sent_again(people: Cast, first: Attempt | None = None, **said: Any) -> Attempt:
    """Declined and sent again; contact to the second attempt was lost."""
    declined = {"no_effect": True, "retryable": True, "error_class": "declined", **said}
    first = make.reported(people.key, first or make.dispatched(people.key), "failed", **declined)
    Attempt.objects.filter(pk=first.pk).update(send_again_at=None)
    return make.reported(people.key, make.send(people.key, first), "unknown")


def test_a_record_that_an_earlier_attempt_failed_with_ends_no_later_one(people: Cast) -> None:
    second = corrected(people, make.unknown(people.key))
    second = make.looked_up(second, LookedUpKind.FOUND, FAILED)
    assert (second.state, second.positive_evidence) == (State.UNKNOWN, False)
    assert LookUp.objects.filter(attempt=second).latest("answered_at").row == "absent_too_early"
    second = make.looked_up(second, LookedUpKind.FOUND, FAILED, DONE)
    assert (second.state, second.result_ref) == (State.OUTCOME_CONFIRMED, "ch_2")


def test_a_second_record_that_failed_there_ends_the_later_attempt(people: Cast) -> None:
    second = corrected(people, make.unknown(people.key))
    failed_too = Record(reference="ch_2", content="same", state="failed")
    assert make.looked_up(second, LookedUpKind.FOUND, FAILED, failed_too).state == State.FAILED


@pytest.mark.parametrize(
    "named", [{}, {"provider_request_id": "req_1"}], ids=["by nothing", "by its request"]
)
def test_whose_record_failed_there_is_for_a_person_where_nobody_named_it(
    people: Cast, named: dict[str, Any]
) -> None:
    second = make.looked_up(sent_again(people, **named), LookedUpKind.FOUND, FAILED)
    assert (second.state, second.reason) == (State.MANUAL_REVIEW, "unresolved")
    assert not isinstance(make.ask_leave(people.key, second), lifecycle.LeaveGiven)
    again = make.looked_up(second, LookedUpKind.FOUND, FAILED)
    assert (again.state, again.reason) == (State.MANUAL_REVIEW, "unresolved")


def test_a_decline_that_names_its_record_ends_no_later_attempt(people: Cast) -> None:
    second = make.looked_up(sent_again(people, provider_request_id="ch_1"), LookedUpKind.FOUND, FAILED)
    assert second.state == State.UNKNOWN


def test_what_was_never_connected_left_no_record(people: Cast) -> None:
    second = sent_again(people, error_class="not_connected")
    assert make.looked_up(second, LookedUpKind.FOUND, FAILED).state == State.FAILED


def test_what_was_not_there_when_it_was_sent_again_left_no_record(people: Cast) -> None:
    second = sent_again(people, make.looked_up(long_unknown(people), LookedUpKind.ABSENT, canary_seen=True))
    assert make.looked_up(second, LookedUpKind.FOUND, FAILED).state == State.FAILED


def long_unknown(people: Cast) -> Attempt:
    """Contact was lost longer ago than what comes late takes."""
    attempt = make.unknown(people.key)
    make.waited(Attempt.objects.filter(pk=attempt.pk))
    return make.fresh(attempt)


@pytest.mark.parametrize(
    ("first", "canary_seen"),
    [(long_unknown, False), (lambda people: make.unknown(people.key), True)],
    ids=["nobody could see", "it may have come later"],
)
def test_what_may_only_not_have_been_seen_may_have_left_one(
    people: Cast, first: Callable[[Cast], Attempt], canary_seen: bool
) -> None:
    looked_up = make.looked_up(first(people), LookedUpKind.ABSENT, canary_seen=canary_seen)
    second = make.looked_up(sent_again(people, looked_up), LookedUpKind.FOUND, FAILED)
    assert (second.state, second.reason) == (State.MANUAL_REVIEW, "unresolved")


def test_a_name_of_every_send_ends_no_later_attempt(people: Cast) -> None:
    """The second attempt is known by the name under which the first one failed."""
    second = name_request(people.key, corrected(people, make.unknown(people.key)), "ch_1")
    second = make.looked_up(second, LookedUpKind.FOUND, FAILED)
    assert (second.state, second.reason) == (State.MANUAL_REVIEW, "unresolved")


def test_what_a_look_up_saw_after_the_later_send_may_be_of_that(people: Cast) -> None:
    second = sent_again(people)
    first = second.operation.attempts.get(number=1)
    make.looked_up(first, LookedUpKind.FOUND, FAILED)
    second = make.looked_up(second, LookedUpKind.FOUND, FAILED)
    assert (second.state, second.reason) == (State.MANUAL_REVIEW, "unresolved")


def record_named(people: Cast, reference: str) -> Attempt:
    """An attempt whose request id is known, tied by a person to a record of the provider."""
    attempt = name_request(people.key, make.unknown(people.key), "req_1")
    item = make.item_of(attempt)
    durable(
        lambda: lifecycle.relink_record(item_id=item.pk, by=people.operator, why="seen", reference=reference)
    )
    return make.fresh(attempt)


def test_the_result_is_what_the_look_up_found_not_what_a_person_had_named(people: Cast) -> None:
    found = Record(reference="re_1", content="same", state="done")
    attempt = make.looked_up(record_named(people, "re_typo"), LookedUpKind.FOUND, found)
    assert (attempt.state, attempt.result_ref) == (State.OUTCOME_CONFIRMED, "re_1")


def test_the_result_is_what_the_last_person_said(people: Cast) -> None:
    attempt = record_named(people, "re_typo")
    item = make.item_of(attempt)
    durable(
        lambda: lifecycle.confirm_happened(item_id=item.pk, by=people.operator, why="seen", reference="re_1")
    )
    assert make.fresh(attempt).result_ref == "re_1"


@pytest.mark.parametrize("reference", ["re_1\nre_2", "re_\u202e1", "re_\u200b1", "re_\x1b1"])
def test_a_reference_that_deceives_is_no_evidence(people: Cast, reference: str) -> None:
    item = make.item_of(make.unknown(people.key))
    with pytest.raises(lifecycle.DecisionRefused, match="printable"):
        durable(
            lambda: lifecycle.confirm_happened(
                item_id=item.pk, by=people.operator, why="seen", reference=reference
            )
        )
