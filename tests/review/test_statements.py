"""What people say became of something sent: on evidence, of dangerous effects by two, counted when wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from guardian.shortcuts import remove_perm

from ledger import lifecycle
from ledger.lifecycle import Decided, DecisionRefused, LeaveRefused
from ledger.models import Approval, Attempt, Decision, Event, ReviewItem, Statement, User
from ledger.queries.invariants import findings
from ledger.queries.numbers import numbers
from ledger.rules.looked_up import LookedUpKind, Record
from ledger.rules.statements import Ended
from ledger.rules.states import State
from ledger.rules.vocabulary import EventKind, ReviewReason
from ledger.transactions import database_clock, durable
from review import decisions
from review.queries import QueueFilters, Tab, queue
from tests.review.pages import page_of
from tests.support import make
from tests.support.cast import Cast

WHY = "I looked it up myself"
Say = Callable[..., Decided]
FOUND = Record(reference="re_9", content="same", state="done", data={})


@pytest.fixture
def ticket(people: Cast) -> ReviewItem:
    """Something harmless that was sent and cannot be looked up."""
    return make.item_of(make.for_a_person(people.key))


@pytest.fixture
def refund(people: Cast) -> ReviewItem:
    """A payment whose agent lost contact."""
    return make.item_of(make.unknown(people.key, make.REFUND))


def state_of(item: ReviewItem) -> str:
    return make.fresh(item.attempt).state


def mine(user: User) -> list[str]:
    return [row.item_id for row in queue(user, QueueFilters(tab=Tab.MINE)).rows]


def counted(name: str) -> dict[str, float]:
    return dict(next(number for number in numbers(database_clock()) if number.name == name).values)


class TestEvidence:
    @pytest.mark.parametrize("say", [decisions.confirm_happened, decisions.confirm_did_not_happen])
    def test_nothing_at_all_is_refused(self, people: Cast, ticket: ReviewItem, say: Say) -> None:
        with pytest.raises(DecisionRefused) as refused:
            say(people.operator, ticket.pk, why="  ")
        assert refused.value.code == "evidence-required"
        assert not Decision.objects.exists()

    def test_a_reference_a_note_or_a_look_up_is_enough(self, people: Cast) -> None:
        by_note, by_reference, by_look_up = (
            make.item_of(make.for_a_person(people.key, args={"title": name})) for name in "abc"
        )
        transcript = by_look_up.attempt.lookups.get()
        decisions.confirm_happened(people.operator, by_note.pk, why=WHY)
        decisions.confirm_happened(people.operator, by_reference.pk, why="", reference="tkt_1")
        decisions.confirm_did_not_happen(people.operator, by_look_up.pk, why="", look_up_id=transcript.pk)
        assert [state_of(item) for item in (by_note, by_reference, by_look_up)] == [
            State.OUTCOME_CONFIRMED, State.OUTCOME_CONFIRMED, State.FAILED,
        ]  # fmt: skip
        (said,) = page_of(people.operator, by_look_up.attempt).sides.statements
        assert said.look_up is not None
        assert said.look_up.answer == "no_lookup"
        assert list(findings()) == []

    def test_a_look_up_of_another_attempt_is_no_evidence(self, people: Cast, ticket: ReviewItem) -> None:
        other = make.for_a_person(people.key, args={"title": "other"}).lookups.get()
        with pytest.raises(DecisionRefused) as refused:
            decisions.confirm_happened(people.operator, ticket.pk, why=WHY, look_up_id=other.pk)
        assert refused.value.code == "look-up-unknown"


class TestDangerousEffects:
    @pytest.mark.parametrize(
        ("say", "settled"),
        [
            (decisions.confirm_happened, State.OUTCOME_CONFIRMED),
            (decisions.confirm_did_not_happen, State.FAILED),
        ],
        ids=["happened", "did_not"],
    )
    def test_a_second_person_settles_what_one_only_says(
        self,
        people: Cast,
        refund: ReviewItem,
        say: Say,
        settled: State,
    ) -> None:
        decided = say(people.operator, refund.pk, why=WHY, reference="re_1")
        assert (decided.state, decided.event.kind) == (State.UNKNOWN, EventKind.STATED)
        page = page_of(people.second_operator, refund.attempt)
        (waiting,) = page.sides.waiting
        assert (waiting.by, waiting.reference, waiting.note) == ("operator", "re_1", WHY)
        assert say(people.operator, refund.pk, why="again").state == State.UNKNOWN
        assert say(people.second_operator, refund.pk, why="seen too", reference="re_1").state == settled
        assert [one.ended_how for one in Statement.objects.order_by("pk")] == [
            Ended.REPLACED, Ended.SETTLED, Ended.SETTLED,
        ]  # fmt: skip
        assert list(findings()) == []

    def test_a_word_that_a_fact_bore_out_needs_no_second_when_people_end_it_later(
        self, people: Cast, refund: ReviewItem
    ) -> None:
        """The look-up found nothing, as one person had said; then the rule changed, and two said it again."""
        decisions.confirm_did_not_happen(people.operator, refund.pk, why="not there")
        attempt = refund.attempt
        attempt = make.found_absent(attempt)
        assert attempt.state == State.FAILED_RETRYABLE
        rule = {**make.TOOLS[make.REFUND], "approvals": 3}
        make.policy(people.tenant, by=people.admin, tools={make.REFUND: rule})
        Attempt.objects.filter(pk=attempt.pk).update(send_again_at=None)
        make.ask_leave(people.key, make.fresh(attempt))
        again = make.item_of(attempt)
        for by in (people.operator, people.second_operator):
            decisions.confirm_did_not_happen(by, again.pk, why="still not there")
        assert state_of(again) == State.FAILED
        assert list(findings()) == []

    def test_a_word_that_a_fact_bore_out_needs_no_second_when_a_conflict_is_decided(
        self, people: Cast, refund: ReviewItem
    ) -> None:
        attempt = refund.attempt
        durable(
            lambda: lifecycle.cancel_operation(
                key=people.key, operation_id=attempt.operation_id, reason="no need"
            )
        )
        decisions.confirm_did_not_happen(people.operator, refund.pk, why="not there")
        attempt = make.found_absent(attempt)
        assert attempt.state == State.FAILED
        make.reported(people.key, attempt, "succeeded", result_ref="re_1")
        conflict = make.item_of(attempt)
        decisions.decide_conflict(
            people.approver, conflict.pk, why="it is there", answer="happened", reference="re_1"
        )
        assert state_of(conflict) == State.OUTCOME_CONFIRMED
        assert list(findings()) == []

    def test_a_second_who_contradicts_settles_nothing_and_a_third_does(
        self, people: Cast, refund: ReviewItem
    ) -> None:
        decisions.confirm_happened(people.operator, refund.pk, why=WHY, reference="re_1")
        decided = decisions.confirm_did_not_happen(people.second_operator, refund.pk, why="not there")
        assert (decided.state, make.item_of(refund.attempt).reason) == (
            State.MANUAL_REVIEW,
            ReviewReason.CONFLICTING_EVIDENCE,
        )
        shown = page_of(people.approver, refund.attempt).sides.waiting
        assert [(said.by, said.happened) for said in shown] == [
            ("operator", True),
            ("second-operator", False),
        ]
        assert decisions.confirm_happened(people.approver, refund.pk, why="I see re_1").state == (
            State.OUTCOME_CONFIRMED
        )
        assert make.fresh(refund.attempt).result_ref == "re_1"
        assert counted("ledger_statements_contradicted") == {"happened": 0, "did_not": 1}

    def test_rejecting_is_no_way_around_the_second_person(self, people: Cast, refund: ReviewItem) -> None:
        decided = decisions.reject(people.operator, refund.pk, why="stop", what="did_not")
        assert decided.state == State.MANUAL_REVIEW
        assert make.fresh(refund.attempt).closed_to_sending_at is not None
        decisions.confirm_did_not_happen(people.approver, refund.pk, why="not there")
        assert (state_of(refund), make.fresh(refund.attempt).failure) == (State.FAILED, "rejected")

    def test_the_word_of_somebody_who_may_no_longer_decide_counts_for_nothing(
        self, people: Cast, refund: ReviewItem
    ) -> None:
        decisions.confirm_happened(people.operator, refund.pk, why=WHY, reference="re_1")
        remove_perm("ledger.decide_work", people.operator, people.tenant)
        decided = decisions.confirm_happened(people.second_operator, refund.pk, why=WHY, reference="re_1")
        assert decided.state == State.UNKNOWN
        assert Statement.objects.earliest("pk").ended_how == Ended.RIGHT_LOST

    def test_a_word_that_it_happened_takes_an_approval_back(self, people: Cast) -> None:
        two = {**make.TOOLS, make.DEPLOY: {"effect": "deployment", "approvals": 1, "summary": "Deploy"}}
        make.policy(people.tenant, by=people.admin, tools=two)
        lost = make.looked_up(make.unknown(people.key, make.DEPLOY), LookedUpKind.NO_LOOKUP)
        item = make.item_of(lost)
        decisions.approve(people.approver, item.pk, why=WHY)
        decisions.confirm_happened(people.operator, item.pk, why="it is live")
        assert Approval.objects.get().void_cause == "a person says it happened"
        assert isinstance(make.ask_leave(people.key, lost), LeaveRefused)


class TestContradicted:
    """A later fact opens a conflict, is shown beside what people said, and finds those who decided."""

    @pytest.fixture
    def decided(self, people: Cast, refund: ReviewItem) -> ReviewItem:
        decisions.confirm_did_not_happen(people.operator, refund.pk, why="their log is empty")
        decisions.confirm_did_not_happen(people.approver, refund.pk, why="nothing there")
        return refund

    def test_by_the_provider(self, people: Cast, decided: ReviewItem) -> None:
        assert state_of(decided) == State.FAILED
        assert mine(people.operator) == mine(people.approver) == []
        make.looked_up(decided.attempt, LookedUpKind.FOUND, FOUND)
        conflict = ReviewItem.objects.get(closed_at=None)
        assert conflict.reason == ReviewReason.CONFLICTING_EVIDENCE
        assert mine(people.operator) == mine(people.approver) == [conflict.pk]
        assert mine(people.second_operator) == []
        sides = page_of(people.second_operator, decided.attempt).sides
        assert sides.contradicted == ("operator", "approver")
        assert [said.note for said in sides.statements] == ["their log is empty", "nothing there"]
        assert ["re_9" in fact.words for fact in sides.facts] == [True]
        assert counted("ledger_statements_contradicted") == {"happened": 0, "did_not": 2}
        assert counted("ledger_statements") == {"did_not": 2}
        assert list(findings()) == []

    def test_and_corrected(self, people: Cast, decided: ReviewItem) -> None:
        make.reported(people.key, decided.attempt, "succeeded", result_ref="re_9")
        conflict = ReviewItem.objects.get(closed_at=None)
        decisions.decide_conflict(
            people.second_operator, conflict.pk, why="it is there", answer="happened", reference="re_9"
        )
        assert (state_of(decided), make.fresh(decided.attempt).operation.outcome) == (
            State.OUTCOME_CONFIRMED,
            "confirmed",
        )
        assert mine(people.operator) == []
        assert list(findings()) == []

    def test_the_same_reference_contradicts_nobody(self, people: Cast, refund: ReviewItem) -> None:
        decisions.confirm_happened(people.operator, refund.pk, why=WHY, reference="re_9")
        decisions.confirm_happened(people.approver, refund.pk, why=WHY, reference="re_9")
        make.looked_up(refund.attempt, LookedUpKind.FOUND, FOUND)
        make.looked_up(refund.attempt, LookedUpKind.ABSENT)
        assert not ReviewItem.objects.filter(closed_at=None).exists()
        assert counted("ledger_statements_contradicted") == {"happened": 0, "did_not": 0}

    def test_a_confirmed_one_that_is_other_content_there(self, people: Cast, ticket: ReviewItem) -> None:
        decisions.confirm_happened(people.operator, ticket.pk, why=WHY, reference="tkt_1")
        other = Record(reference="tkt_1", content="other", state="done", data={})
        make.looked_up(ticket.attempt, LookedUpKind.FOUND, other)
        assert mine(people.operator) == [ReviewItem.objects.get(closed_at=None).pk]
        assert counted("ledger_statements_contradicted")["happened"] == 1
        assert Event.objects.filter(kind=EventKind.CONFLICT).exists()

    def test_a_duplicate_keeps_both_references(self, people: Cast) -> None:
        """A second reference of what is confirmed: closed as a duplicate effect, nothing is lost."""
        attempt = make.confirmed(people.key, result_ref="m_1")
        make.reported(people.key, attempt, "succeeded", result_ref="m_2")
        conflict = ReviewItem.objects.get(closed_at=None)
        with pytest.raises(DecisionRefused):
            decisions.decide_conflict(people.operator, conflict.pk, why=WHY, answer="duplicate")
        decisions.decide_conflict(people.operator, conflict.pk, why="both are ours", answer="stands")
        assert Attempt.objects.get().result_ref == "m_1"
