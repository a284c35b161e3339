"""Two people at once, on connections of their own: exactly one decision, and the other is told."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from ledger.lifecycle import Decided, DecisionRefused
from ledger.models import Approval, Decision, ReviewGroup, Vote
from ledger.rules.states import State
from review import decisions, ownership, ownership_rules, teams
from review.models import OwnershipVersion
from review.ownership_rules import RulesChanged, TypedRule
from review.reach import Reach
from review.teams import TeamRefused
from tests.review.teams import in_force
from tests.support import make, races
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db(transaction=True)

at_once = partial(races.at_once, may_raise=(DecisionRefused,))


@pytest.fixture
def people(transactional_db: None) -> Cast:
    return cast()


def split(answers: list[Decided | DecisionRefused]) -> tuple[list[Decided], list[DecisionRefused]]:
    decided = [answer for answer in answers if isinstance(answer, Decided)]
    return decided, [answer for answer in answers if isinstance(answer, DecisionRefused)]


def test_two_contrary_decisions_are_one(people: Cast) -> None:
    item = make.item_of(make.for_a_person(people.key))
    decided, refused = split(
        at_once(
            lambda: decisions.confirm_happened(people.operator, item.pk, why="seen", reference="re_1"),
            lambda: decisions.confirm_did_not_happen(people.second_operator, item.pk, why="not there"),
        )
    )
    (winner,), (loser,) = decided, refused
    assert loser.code == "already-decided"
    assert winner.decision.by.get_username() in loser.message
    assert Decision.objects.filter(item=item).count() == 1


def test_a_double_click_is_one_persons_yes(people: Cast) -> None:
    two_people = {**make.TOOLS, make.DEPLOY: {**make.TOOLS[make.DEPLOY], "approvals": 2}}
    make.policy(people.tenant, by=people.admin, tools=two_people)
    item = make.item_of(make.held(people.key))
    at_once(*[lambda: decisions.approve(people.approver, item.pk, why="go")] * 2)
    assert Vote.objects.filter(voided_at=None).count() == 1
    assert not Approval.objects.exists()


def test_two_approvers_at_once_make_one_approval(people: Cast) -> None:
    two_people = {**make.TOOLS, make.DEPLOY: {**make.TOOLS[make.DEPLOY], "approvals": 2}}
    make.policy(people.tenant, by=people.admin, tools=two_people)
    attempt = make.held(people.key)
    item = make.item_of(attempt)
    decided, _ = split(
        at_once(
            lambda: decisions.approve(people.approver, item.pk, why="go"),
            lambda: decisions.approve(people.second_approver, item.pk, why="go"),
        )
    )
    assert len(decided) == 2
    assert Approval.objects.get().votes.count() == 2
    assert make.fresh(attempt).state == State.INTENT_RECORDED


def test_two_claims_at_once_are_one(people: Cast) -> None:
    item = make.item_of(make.unknown(people.key))
    decided, refused = split(
        at_once(
            lambda: ownership.claim(people.operator, item.pk),
            lambda: ownership.claim(people.second_operator, item.pk),
        )
    )
    (winner,), (loser,) = decided, refused
    assert loser.code == "claimed-by-other"
    item.refresh_from_db()
    assert item.claimed_by == winner.decision.by


def test_a_take_over_and_the_holders_decision_are_one_of_both(people: Cast) -> None:
    item = make.item_of(make.for_a_person(people.key))
    ownership.claim(people.operator, item.pk)
    decided, refused = split(
        at_once(
            lambda: ownership.take_over(people.second_operator, item.pk, why="operator is away"),
            lambda: decisions.confirm_did_not_happen(people.operator, item.pk, why="not there"),
        )
    )
    (winner,), (loser,) = decided, refused
    item.refresh_from_db()
    if item.closed_at is None:
        assert (winner.item.claimed_by, loser.code) == (people.second_operator, "claimed-by-other")
    else:
        assert (winner.decision.by, loser.code) == (people.operator, "already-decided")


def test_two_hand_overs_at_once_are_one(people: Cast) -> None:
    item = make.item_of(make.for_a_person(people.key))
    ownership.claim(people.operator, item.pk)
    decided, refused = split(
        at_once(
            lambda: ownership.hand_over(people.operator, item.pk, to="approver", why="yours"),
            lambda: ownership.hand_over(people.operator, item.pk, to="second-operator", why="yours"),
        )
    )
    (winner,), (loser,) = decided, refused
    assert loser.code == "claimed-by-other"
    item.refresh_from_db()
    assert item.owner == item.claimed_by == winner.item.owner


def test_a_decision_stands_whether_or_not_it_was_snoozed_at_that_moment(people: Cast) -> None:
    item = make.item_of(make.for_a_person(people.key))
    decided, refused = split(
        at_once(
            lambda: ownership.snooze(people.operator, item.pk, until=timedelta(hours=1), why="later"),
            lambda: decisions.confirm_did_not_happen(people.second_operator, item.pk, why="not there"),
        )
    )
    item.refresh_from_db()
    assert item.closed_at is not None
    assert any(answer.decision.by == people.second_operator for answer in decided)
    assert {answer.code for answer in refused} <= {"already-decided"}


def test_two_saves_of_rules_at_once_are_one_version(people: Cast) -> None:
    answers = races.at_once(
        lambda: in_force(people, TypedRule("*", owner="operator")),
        lambda: in_force(people, TypedRule("*", owner="approver")),
        may_raise=(RulesChanged,),
    )
    assert sorted(isinstance(answer, RulesChanged) for answer in answers) == [False, True]
    assert OwnershipVersion.objects.get().entries.count() == 1


def test_a_person_and_the_rules_at_once_give_it_to_one_of_both(people: Cast) -> None:
    item = make.item_of(make.for_a_person(people.key))
    in_force(people, TypedRule("*", owner="operator"))
    applied, assigned = at_once(
        lambda: ownership_rules.apply_rules(people.admin, "acme", reach=Reach.UNOWNED, why="as agreed"),
        lambda: ownership.assign(people.admin, item.pk, to="approver", why="yours"),
    )
    item.refresh_from_db()
    assert isinstance(assigned, Decided)
    assert item.owner == people.approver
    assert Decision.objects.filter(item=item).count() == 1 + applied.moved


def test_nobody_is_left_out_of_the_first_team_by_two_at_once(people: Cast) -> None:
    first = ReviewGroup.objects.get(tenant=people.tenant, is_first_owner=True)
    first.members.set([people.operator, people.approver])
    races.at_once(
        lambda: teams.remove_member(people.admin, first.pk, username="operator"),
        lambda: teams.remove_member(people.admin, first.pk, username="approver"),
        may_raise=(TeamRefused,),
    )
    assert first.members.count() == 1
