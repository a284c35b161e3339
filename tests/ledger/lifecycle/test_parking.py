"""Facts that come before what they are about: kept once, joined once, judged as the domain judges them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, transaction

from ledger import lifecycle
from ledger.lifecycle import Kept, NoRoomToPark, OutcomeAnswer, OutcomeReport, Told
from ledger.models import ApiKey, Attempt, Event, ParkedFact
from ledger.models.ids import attempt_id
from ledger.queries.invariants import findings
from ledger.queries.parked import parked_now, recorded_after_send
from ledger.reconciliation import sweep_once
from ledger.rules import parking
from ledger.rules.states import State
from ledger.rules.vocabulary import EventKind
from ledger.transactions import durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

KEY = "mail:early"
DECLINED: dict[str, Any] = {"outcome": "failed", "no_effect": True, "error_class": "declined"}


@pytest.fixture
def people() -> Cast:
    return cast()


def told(by: ApiKey, *, about: str = "", key: str = "", **report: Any) -> OutcomeAnswer | Kept:
    said = OutcomeReport(**{"worker_id": "worker-1", "outcome": "succeeded", **report})
    return durable(lambda: lifecycle.take_outcome(key=by, told=Told(about, key), report=said))


def requested(by: ApiKey, *, about: str = "", key: str = "", request_id: str = "pr_1") -> Any:
    return durable(
        lambda: lifecycle.take_provider_request(
            key=by, told=Told(about, key), worker_id="worker-1", provider_request_id=request_id
        )
    )


def kinds_of(attempt: Attempt) -> list[str]:
    return [str(event.kind) for event in attempt.operation.events.order_by("sequence")]


def reports_of(attempt: Attempt) -> list[Event]:
    return list(attempt.events.filter(kind=EventKind.OUTCOME_REPORTED).order_by("sequence"))


def test_a_fact_about_an_unknown_id_is_kept_as_it_was_told(people: Cast) -> None:
    lost = attempt_id()
    assert told(people.key, about=lost, result_ref="res_1") == Kept(replayed=False)
    fact = ParkedFact.objects.get()
    assert (fact.tenant, fact.attempt_told, fact.told_by, fact.joined_at) == (
        people.tenant, lost, people.key, None,
    )  # fmt: skip
    assert fact.said == {"worker_id": "worker-1", "outcome": "succeeded", "result_ref": "res_1"}


def test_the_same_words_are_the_same_fact_and_are_counted(people: Cast) -> None:
    lost = attempt_id()
    for replayed in (False, True, True):
        assert told(people.key, about=lost, result_ref="res_1") == Kept(replayed=replayed)
    told(people.key, about=lost, result_ref="res_2")
    assert sorted(ParkedFact.objects.values_list("times_told", flat=True)) == [1, 3]


def test_success_that_came_before_its_intent_is_a_send_without_leave(people: Cast) -> None:
    told(people.key, key=KEY, result_ref="res_1", occurred_at="2026-08-11T09:30:00+00:00")
    answer = make.posted(people.key, make.intent_of(operation_key=KEY))
    assert answer.standing is not None
    attempt = make.fresh(answer.standing.attempt)
    assert (attempt.state, attempt.reason, attempt.maybe_sent) == (
        State.MANUAL_REVIEW, "sent_without_leave", True,
    )  # fmt: skip
    assert (str(answer.kind), str(answer.standing.directive)) == ("held", "hold")
    assert kinds_of(attempt) == ["attempt.intent", "attempt.outcome_reported", "attempt.manual_review"]
    fact, (report,) = ParkedFact.objects.get(), reports_of(attempt)
    assert report.data["parked"] == {
        "fact": fact.pk, "since": fact.parked_at.isoformat(), "told": {"operation_key": KEY},
    }  # fmt: skip
    assert report.data["occurred_at"] == "2026-08-11T09:30:00+00:00"
    assert (fact.attempt_id, fact.joined_at is not None) == (attempt.pk, True)
    assert recorded_after_send() == 1
    assert list(findings()) == []


def test_nothing_can_be_sent_after_it(people: Cast) -> None:
    told(people.key, key=KEY, result_ref="res_1")
    answer = make.ask_leave(people.key, make.recorded(people.key, operation_key=KEY))
    assert isinstance(answer, lifecycle.LeaveRefused)
    assert answer.problem == "on-hold"


def test_proof_of_no_effect_that_came_first_closes_it(people: Cast) -> None:
    told(people.key, key=KEY, **DECLINED)
    attempt = make.fresh(make.recorded(people.key, operation_key=KEY))
    assert (attempt.state, attempt.failed_by) == (State.FAILED, "agent")
    assert recorded_after_send() == 0


def test_facts_are_applied_in_the_order_they_came_by_whoever_told_them(people: Cast) -> None:
    other = make.key(make.agent(people.tenant, people.owner, "relay"))
    requested(people.key, key=KEY)
    told(other, key=KEY, provider_request_id="pr_1")
    attempt = make.fresh(make.recorded(people.key, operation_key=KEY))
    events = list(attempt.events.order_by("sequence"))
    said = [(str(e.kind), e.actor) for e in events if "reported" in e.kind or "request" in e.kind]
    assert said == [("attempt.provider_request", "billing-bot"), ("attempt.outcome_reported", "relay")]
    assert attempt.state == State.OUTCOME_CONFIRMED  # a receipt settles what waits for a person
    assert list(findings()) == []


def test_of_a_known_operation_it_settles_at_once(people: Cast) -> None:
    attempt = make.dispatched(people.key, operation_key=KEY)
    answer = told(people.key, key=KEY, result_ref="res_1")
    assert isinstance(answer, OutcomeAnswer)
    assert (make.fresh(attempt).state, answer.replayed) == (State.OUTCOME_CONFIRMED, False)
    assert "parked" not in reports_of(attempt)[0].data
    again = told(people.key, key=KEY, result_ref="res_1")
    assert isinstance(again, OutcomeAnswer)
    assert again.replayed
    assert len(reports_of(attempt)) == 1


def test_a_lost_id_with_its_operations_key_is_joined_and_answered_alike(people: Cast) -> None:
    attempt = make.dispatched(people.key, operation_key=KEY)
    lost = attempt_id()
    assert told(people.key, about=lost, key=KEY, result_ref="res_1") == Kept(replayed=False)
    assert told(people.key, about=lost, key=KEY, result_ref="res_1") == Kept(replayed=True)
    assert make.fresh(attempt).state == State.OUTCOME_CONFIRMED
    assert len(reports_of(attempt)) == 1


def test_a_report_of_other_content_confirms_nothing(people: Cast) -> None:
    attempt = make.dispatched(people.key, operation_key=KEY)
    told(people.key, key=KEY, result_ref="res_1", args_hash="v1:sha256:" + "0" * 64)
    assert (make.fresh(attempt).state, make.fresh(attempt).reason) == (State.MANUAL_REVIEW, "hash_mismatch")


def test_no_effect_of_other_content_proves_nothing(people: Cast) -> None:
    attempt = make.dispatched(people.key, operation_key=KEY)
    told(people.key, key=KEY, args_hash="v1:sha256:" + "0" * 64, **DECLINED)
    assert make.fresh(attempt).state == State.UNKNOWN


def test_no_effect_by_key_alone_is_believed_of_the_only_send(people: Cast) -> None:
    attempt = make.dispatched(people.key, operation_key=KEY)
    told(people.key, key=KEY, retryable=True, **DECLINED)
    assert make.fresh(attempt).state == State.FAILED_RETRYABLE


def sent_again(people: Cast, *, approved: bool) -> Attempt:
    """The second send of an operation, in flight: a person approved it, or the first had no effect."""
    if not approved:
        return make.replaced(people.key)[1]
    first = make.for_a_person(people.key)
    item = make.item_of(first)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="checked"))
    return make.send(people.key, first)


@pytest.mark.parametrize("approved", [True, False])
def test_no_effect_by_key_alone_may_be_about_another_send(people: Cast, *, approved: bool) -> None:
    second = sent_again(people, approved=approved)
    answer = told(people.key, key=second.operation.operation_key, retryable=True, **DECLINED)
    assert isinstance(answer, OutcomeAnswer)
    assert make.fresh(second).state == State.UNKNOWN
    assert reports_of(second)[0].data["no_effect"], "what was said is kept as it was said"
    assert isinstance(make.ask_leave(people.key, make.fresh(second)), lifecycle.LeaveRefused)
    by_sender = make.reported(people.key, second, "failed", no_effect=True, error_class="refused")
    assert by_sender.state == State.FAILED


def test_no_effect_of_a_lost_id_proves_nothing_about_a_send_that_is_known(people: Cast) -> None:
    attempt = make.dispatched(people.key, operation_key=KEY)
    told(people.key, about=attempt_id(), key=KEY, retryable=True, **DECLINED)
    assert make.fresh(attempt).state == State.UNKNOWN


def test_no_effect_of_a_lost_id_that_waited_is_for_a_person(people: Cast) -> None:
    told(people.key, about=attempt_id(), key=KEY, **DECLINED)
    attempt = make.fresh(make.recorded(people.key, operation_key=KEY))
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, "sent_without_leave")


@pytest.mark.parametrize("says_which", [True, False])
def test_content_says_which_of_two_sends_had_no_effect(people: Cast, *, says_which: bool) -> None:
    first = make.dispatched(people.key, operation_key=KEY)
    variant = make.variant(people.key, first, {"to": "eve@example.org", "subject": "Invoice 7"})
    told(people.key, about=variant.pk, outcome="unknown")
    told(people.key, key=KEY, args_hash=first.args_hash if says_which else "", **DECLINED)
    assert make.fresh(variant).maybe_sent
    assert make.fresh(first).state == (State.FAILED if says_which else State.UNKNOWN)


def test_a_report_finds_the_attempt_of_its_own_content(people: Cast) -> None:
    first = make.dispatched(people.key, operation_key=KEY)
    variant = make.variant(people.key, first, {"to": "eve@example.org", "subject": "Invoice 7"})
    told(people.key, key=KEY, result_ref="res_1", args_hash=variant.args_hash)
    assert make.fresh(variant).maybe_sent
    assert make.fresh(first).state == State.DISPATCHED


def test_what_a_restore_brings_back_is_joined_by_the_sweep(people: Cast) -> None:
    attempt = make.dispatched(people.key)
    fact = make.unjoined(people.key, attempt)
    assert sweep_once().joined == 1
    assert sweep_once().joined == 0
    fact.refresh_from_db()
    assert (fact.attempt_id, make.fresh(attempt).state) == (attempt.pk, State.OUTCOME_CONFIRMED)
    assert len(reports_of(attempt)) == 1
    repeated = make.reported(people.key, attempt, "succeeded", result_ref="res_1")
    assert len(reports_of(repeated)) == 1


def test_a_long_message_waits_without_its_end_and_shows_nothing_masked(people: Cast) -> None:
    make.policy(people.tenant, tools={make.MAIL: {**make.TOOLS[make.MAIL], "mask": ["/to"]}})
    told(people.key, key=KEY, outcome="unknown", message="x" * 3_990 + make.ARGS[make.MAIL]["to"])
    assert len(ParkedFact.objects.get().said["message"]) == 4_000
    attempt = make.recorded(people.key, operation_key=KEY)
    assert reports_of(attempt)[0].data["message"] == "x" * 3_990 + "[masked]"
    assert list(findings()) == []


def test_a_fact_of_another_tenant_is_never_joined(people: Cast) -> None:
    foreign = make.key(make.agent(people.other_tenant, people.stranger))
    attempt = make.dispatched(people.key, operation_key=KEY)
    assert told(foreign, about=attempt.pk, key=KEY, result_ref="res_1") == Kept(replayed=False)
    assert told(foreign, key=KEY, result_ref="res_1") == Kept(replayed=False)
    assert sweep_once().joined == 0
    assert make.fresh(attempt).state == State.DISPATCHED
    assert set(ParkedFact.objects.values_list("tenant", flat=True)) == {people.other_tenant.pk}


def test_what_a_revoked_key_told_early_settles_nothing(people: Cast) -> None:
    told(people.key, key=KEY, result_ref="res_1")
    people.key.revoked_at = ParkedFact.objects.get().parked_at
    people.key.save()
    attempt = make.fresh(make.recorded(make.key(people.agent), operation_key=KEY))
    assert attempt.state == State.INTENT_RECORDED
    assert reports_of(attempt)[0].data["by_revoked_key"] == people.key.key_id


@pytest.mark.parametrize(("limit", "most"), [("MOST_FACTS", 2), ("MOST_BYTES", 250)])
def test_beyond_the_limit_a_new_fact_stays_with_its_sender(
    people: Cast, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    foreign = make.key(make.agent(people.other_tenant, people.stranger))
    lost = [attempt_id() for _ in range(3)]
    monkeypatch.setattr(parking, limit, most)
    told(people.key, about=lost[0], key="known", result_ref="res_1")
    told(people.key, about=lost[1], key="known", result_ref="res_1")
    assert parked_now(people.tenant.pk).is_nearly_full
    with pytest.raises(NoRoomToPark):
        told(people.key, about=lost[2], key="known", result_ref="res_1")
    assert told(people.key, about=lost[1], key="known", result_ref="res_1") == Kept(replayed=True)
    assert told(foreign, about=lost[2], result_ref="res_1") == Kept(replayed=False)
    attempt = make.dispatched(people.key)
    assert make.reported(people.key, attempt, "succeeded", result_ref="r").state == State.OUTCOME_CONFIRMED
    make.recorded(people.key, operation_key="known")  # joined, they make room
    assert told(people.key, about=lost[2], result_ref="res_1") == Kept(replayed=False)


def test_the_database_keeps_what_was_told(people: Cast) -> None:
    told(people.key, about=attempt_id(), result_ref="res_1")
    facts = ParkedFact.objects.all()
    other = make.dispatched(make.key(make.agent(people.other_tenant, people.stranger)))
    for wrong in (
        lambda: facts.update(body="{}"),
        facts.delete,
        lambda: facts.update(joined_at=other.created_at),
        lambda: facts.update(joined_at=other.created_at, attempt=other),
    ):
        expected = r"never change|Cannot delete|joined_to|wall_"
        with pytest.raises(DatabaseError, match=expected), transaction.atomic():
            wrong()
