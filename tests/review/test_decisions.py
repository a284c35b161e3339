"""Each decision asks the wall, the right and the ledger's facts, and is one row with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from guardian.shortcuts import remove_perm

from ledger.lifecycle import Decided, DecisionRefused, LeaveGiven, LeaveRefused
from ledger.models import Attempt, Decision, Event, ReviewItem, Tenant, User
from ledger.rules.looked_up import LookedUpKind
from ledger.rules.states import State
from ledger.rules.vocabulary import ConfirmedBy, DecisionKind, FailedBy, ReviewReason
from review import decisions, ownership
from review.decisions import ArgumentsUnreadable
from review.door import NotPermitted
from review.queries import NotVisible
from review.roles import Role, grant_role
from tests.support import make
from tests.support.cast import Cast, person

Decide = Callable[[User, str], Decided]

WHY = "I looked it up myself"
DECIDE: Mapping[str, Decide] = {
    "approve": lambda user, item: decisions.approve(user, item, why=WHY),
    "reject": lambda user, item: decisions.reject(user, item, why=WHY, what="not_known"),
    "confirm_happened": lambda user, item: decisions.confirm_happened(user, item, why=WHY, reference="re_1"),
    "confirm_did_not_happen": lambda user, item: decisions.confirm_did_not_happen(user, item, why=WHY),
    "recheck": lambda user, item: decisions.recheck(user, item, why=WHY),
    "relink_arguments": lambda user, item: decisions.relink_arguments(
        user, item, why=WHY, typed='{"title": "Printer is out of paper"}'
    ),
    "relink_record": lambda user, item: decisions.relink_record(user, item, why=WHY, reference="re_1"),
}
every_decision = pytest.mark.parametrize("decide", DECIDE.values(), ids=DECIDE.keys())


@pytest.fixture
def item(people: Cast) -> ReviewItem:
    """A sent attempt that a fresh look-up did not find: everything may be decided about it."""
    notes = {"effect": "write", "provider": "notes"}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, "note.add": notes})
    attempt = make.unknown(people.key, "note.add", args={"title": "Printer is on fire"})
    make.looked_up(attempt, LookedUpKind.ABSENT)
    make.waited(Attempt.objects.filter(pk=attempt.pk))
    return make.item_of(make.looked_up(attempt, LookedUpKind.ABSENT))


def untouched(item: ReviewItem) -> bool:
    before = (item.reason, item.closed_at)
    item.refresh_from_db()
    return (item.reason, item.closed_at) == before and not Decision.objects.filter(item=item).exists()


@every_decision
def test_an_approver_may_decide(people: Cast, item: ReviewItem, decide: Decide) -> None:
    decided = decide(people.approver, item.pk)
    assert (decided.decision.by, decided.decision.why) == (people.approver, WHY)
    assert decided.event.actor == "approver"
    assert Event.objects.filter(pk=decided.event.pk, operation=item.operation_id).exists()


@pytest.mark.parametrize("what", ["not_known", "did_not"])
def test_what_is_closed_to_sending_is_no_question_of_sending_any_more(people: Cast, what: str) -> None:
    """Of a payment two people must say that it did not happen."""
    refund = {**make.TOOLS[make.REFUND], "idempotent": False, "key_ttl_s": 0}
    make.policy(people.tenant, by=people.admin, tools={make.REFUND: refund})
    attempt = make.unknown(people.key, make.REFUND)
    attempt = make.found_absent(attempt)
    assert attempt.reason == ReviewReason.NOT_IDEMPOTENT
    decisions.reject(people.approver, make.item_of(attempt).pk, why=WHY, what=what)
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, ReviewReason.UNRESOLVED)
    assert make.item_of(attempt).reason == ReviewReason.UNRESOLVED


@every_decision
def test_who_sees_and_may_not_decide_is_told_the_right_and_who_grants_it(
    people: Cast, item: ReviewItem, decide: Decide
) -> None:
    for user in people.not_deciding:
        with pytest.raises(NotPermitted, match="decide work in Acme") as refused:
            decide(user, item.pk)
        assert refused.value.granted_by == ("admin",)
    assert untouched(item)


@every_decision
def test_who_may_not_know_learns_nothing(people: Cast, item: ReviewItem, decide: Decide) -> None:
    for user in people.blind:
        with pytest.raises(NotVisible):
            decide(user, item.pk)
    with pytest.raises(NotVisible):
        decide(people.approver, "rev_00000000000000000000000000")
    assert untouched(item)


@every_decision
def test_a_right_taken_away_a_moment_ago_is_gone(people: Cast, item: ReviewItem, decide: Decide) -> None:
    remove_perm("ledger.decide_work", people.approver, people.tenant)
    with pytest.raises(NotPermitted):
        decide(people.approver, item.pk)
    assert untouched(item)


@every_decision
def test_what_another_person_has_claimed_must_be_taken_over_first(
    people: Cast, item: ReviewItem, decide: Decide
) -> None:
    ownership.claim(people.operator, item.pk)
    with pytest.raises(DecisionRefused, match="operator has claimed") as refused:
        decide(people.approver, item.pk)
    assert refused.value.code == "claimed-by-other"
    ownership.take_over(people.approver, item.pk, why="it is urgent")
    assert decide(people.approver, item.pk).decision.by == people.approver


class TestApproving:
    def test_an_operator_without_a_scope_may_not(self, people: Cast, item: ReviewItem) -> None:
        with pytest.raises(NotPermitted, match="approve sends of this tool"):
            decisions.approve(people.operator, item.pk, why=WHY)
        assert untouched(item)

    def test_the_owner_of_the_agent_may_not(self, people: Cast, item: ReviewItem) -> None:
        with pytest.raises(NotPermitted, match="own the agent"):
            decisions.approve(people.owner, item.pk, why=WHY)

    def test_who_asked_for_it_may_not(self, people: Cast) -> None:
        asked = make.held(people.key, requested_by=people.approver)
        with pytest.raises(NotPermitted, match="asked for this"):
            decisions.approve(people.approver, make.item_of(asked).pk, why=WHY)

    def test_who_corrected_the_arguments_may_not(self, people: Cast) -> None:
        held = make.item_of(make.held(people.key))
        decisions.relink_arguments(people.approver, held.pk, why=WHY, typed='{"version": "2026.12"}')
        corrected = ReviewItem.objects.get(closed_at=None)
        with pytest.raises(NotPermitted, match="corrected these arguments"):
            decisions.approve(people.approver, corrected.pk, why=WHY)
        assert decisions.approve(people.second_approver, corrected.pk, why=WHY).state == State.INTENT_RECORDED

    def test_who_published_the_rule_may_not(self, people: Cast) -> None:
        publisher = person("publisher", people.tenant, Role.ADMIN, Role.APPROVER)
        stricter = {**make.TOOLS, make.DEPLOY: {**make.TOOLS[make.DEPLOY], "approvals": 2}}
        make.policy(people.tenant, by=publisher, tools=stricter)
        held = make.item_of(make.held(people.key))
        with pytest.raises(NotPermitted, match="published the rule"):
            decisions.approve(publisher, held.pk, why=WHY)

    def test_a_superuser_with_every_role_is_not_exempt(self, people: Cast, item: ReviewItem) -> None:
        for role in Role:
            grant_role(people.superuser, people.tenant, role)
        people.agent.owner = people.superuser
        people.agent.save()
        with pytest.raises(NotPermitted, match="own the agent"):
            decisions.approve(people.superuser, item.pk, why=WHY)

    def test_an_approval_leads_to_exactly_one_send(self, people: Cast, item: ReviewItem) -> None:
        decisions.approve(people.approver, item.pk, why=WHY)
        sent = make.ask_leave(people.key, item.attempt)
        assert isinstance(sent, LeaveGiven)
        assert sent.attempt.number == 2
        assert isinstance(make.ask_leave(people.key, make.fresh(sent.attempt)), LeaveRefused)

    def test_a_payment_needs_two_people(self, people: Cast) -> None:
        stricter = {**make.TOOLS, make.DEPLOY: {**make.TOOLS[make.DEPLOY], "approvals": 2}}
        make.policy(people.tenant, by=people.admin, tools=stricter)
        attempt = make.held(people.key)
        held = make.item_of(attempt)
        assert decisions.approve(people.approver, held.pk, why=WHY).state == State.MANUAL_REVIEW
        assert decisions.approve(people.approver, held.pk, why="again").state == State.MANUAL_REVIEW
        assert decisions.approve(people.second_approver, held.pk, why=WHY).state == State.INTENT_RECORDED

    def test_what_changed_while_reading_is_not_approved(self, people: Cast, item: ReviewItem) -> None:
        with pytest.raises(DecisionRefused) as refused:
            decisions.approve(people.approver, item.pk, why=WHY, shown_digest="v1:sha256:" + "0" * 64)
        assert refused.value.code == "changed-while-reading"

    def test_authority_is_asked_when_pressed(self, people: Cast, item: ReviewItem) -> None:
        Tenant.objects.filter(pk=people.tenant.pk).update(suspended_at=item.opened_at)
        with pytest.raises(DecisionRefused) as refused:
            decisions.approve(people.approver, item.pk, why=WHY)
        assert refused.value.reasons == ("tenant-suspended",)


class TestWhatFollows:
    def test_confirmed_on_a_persons_evidence(self, people: Cast, item: ReviewItem) -> None:
        decided = decisions.confirm_happened(people.operator, item.pk, why=WHY, reference="re_1")
        assert (decided.state, decided.attempt.confirmed_by) == (
            State.OUTCOME_CONFIRMED,
            ConfirmedBy.OPERATOR,
        )

    def test_it_did_not_happen(self, people: Cast, item: ReviewItem) -> None:
        decided = decisions.confirm_did_not_happen(people.operator, item.pk, why=WHY)
        assert (decided.state, decided.attempt.failed_by) == (State.FAILED, FailedBy.OPERATOR)

    def test_rejected_and_not_known_stays_for_a_person(self, people: Cast, item: ReviewItem) -> None:
        decided = decisions.reject(people.operator, item.pk, why=WHY, what="not_known")
        assert decided.state == State.MANUAL_REVIEW
        with pytest.raises(DecisionRefused, match="closed to sending"):
            decisions.approve(people.approver, item.pk, why=WHY)

    def test_a_held_one_rejected_is_failed(self, people: Cast) -> None:
        held = make.item_of(make.held(people.key))
        assert decisions.reject(people.operator, held.pk, why=WHY).state == State.FAILED

    def test_looked_up_once_more(self, people: Cast) -> None:
        unknown = make.item_of(make.unknown(people.key))
        assert decisions.recheck(people.operator, unknown.pk, why=WHY).state == State.UNKNOWN

    def test_the_second_to_decide_is_told_who_was_first(self, people: Cast, item: ReviewItem) -> None:
        decisions.confirm_did_not_happen(people.operator, item.pk, why=WHY)
        with pytest.raises(DecisionRefused, match="operator decided this") as refused:
            decisions.confirm_happened(people.approver, item.pk, why=WHY, reference="re_1")
        assert refused.value.code == "already-decided"

    def test_a_conflict_is_decided(self, people: Cast, item: ReviewItem) -> None:
        attempt = item.attempt
        decisions.confirm_did_not_happen(people.operator, item.pk, why=WHY)
        make.reported(people.key, attempt, "succeeded", result_ref="re_9")
        conflict = ReviewItem.objects.get(closed_at=None)
        assert conflict.reason == ReviewReason.CONFLICTING_EVIDENCE
        with pytest.raises(NotPermitted):
            decisions.decide_conflict(people.viewer, conflict.pk, why=WHY, answer="stands")
        decided = decisions.decide_conflict(
            people.operator, conflict.pk, why=WHY, answer="happened", reference="re_9"
        )
        assert decided.state == State.OUTCOME_CONFIRMED
        assert decided.decision.kind == DecisionKind.CONFLICT_HAPPENED


class TestCorrecting:
    @pytest.mark.parametrize(
        "typed",
        [
            "",
            "{",
            "[1]",
            "null",
            '{"a": 1, "a": 2}',
            '{"a": NaN}',
            '{"a": "\\ud800"}',
            '{"a": 1e400}',
            "\ud800",
        ],
    )
    def test_what_cannot_be_stored_is_given_back_as_typed(
        self, people: Cast, item: ReviewItem, typed: str
    ) -> None:
        with pytest.raises(ArgumentsUnreadable) as refused:
            decisions.relink_arguments(people.operator, item.pk, why=WHY, typed=typed)
        assert refused.value.typed == typed
        assert refused.value.detail
        assert untouched(item)

    def test_it_makes_a_held_attempt_that_names_who_typed_it(self, people: Cast, item: ReviewItem) -> None:
        typed: dict[str, Any] = {"title": "Printer is out of paper"}
        decisions.relink_arguments(
            people.operator, item.pk, why=WHY, typed='{"title":"Printer is out of paper"}'
        )
        corrected = item.attempt.descendants.get()
        assert (corrected.args, corrected.arguments_by, corrected.state) == (
            typed,
            people.operator,
            State.MANUAL_REVIEW,
        )
