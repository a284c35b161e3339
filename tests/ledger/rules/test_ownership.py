"""Whose a question is: the first rule that matches decides, and somebody who can act owns it, always."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.ownership import Able, Owned, OwnershipRule, Question, first_match, owner_by
from ledger.rules.pointers import glob_matches
from ledger.rules.vocabulary import Effect, ReviewReason

FIRST_TEAM = 1
reasons = st.sampled_from([ReviewReason.UNKNOWN, ReviewReason.NO_LOOKUP, ReviewReason.REVERSED])
effects = st.sampled_from([Effect.PAYMENT, Effect.MESSAGE])
ids = st.integers(1, 4)
named = st.one_of(ids.map(lambda i: {"team": i}), ids.map(lambda i: {"person": i}))
question_rules = st.builds(
    lambda glob, reason, effect, owner: OwnershipRule(glob, reason, effect, **owner),
    st.text(alphabet="ab*?", max_size=3),
    st.none() | reasons,
    st.none() | effects,
    named,
)
dead_letter_rules = st.builds(
    lambda glob, effect, team, destination: OwnershipRule(
        glob, effect=effect, team=team, destination_glob=destination
    ),
    st.text(alphabet="ab*?", max_size=3),
    st.none() | effects,
    ids,
    st.text(alphabet="cd*?", min_size=1, max_size=3),
)
rules = question_rules | dead_letter_rules
lists_of_rules = st.lists(rules, max_size=6)
dead_letters = st.builds(
    Question,
    st.text(alphabet="ab", max_size=3),
    st.none(),
    effects,
    st.text(alphabet="cd", min_size=1, max_size=3),
)
questions = dead_letters | st.builds(Question, st.text(alphabet="ab", max_size=3), reasons, effects)
able = st.builds(Able, st.frozensets(ids), st.frozensets(ids))


def model(rules: Sequence[OwnershipRule], question: Question, able: Able) -> tuple[int, int | None]:
    """The same, told from behind: what a rule further up says is said last."""
    said: tuple[int, int | None] = (FIRST_TEAM, None)
    for rule in reversed(rules):
        same_reason = rule.reason is None or rule.reason == question.reason
        same_effect = rule.effect is None or rule.effect == question.effect
        if not (glob_matches(rule.tool_glob, question.tool) and same_reason and same_effect):
            continue
        if question.reason is None and not rule.destination_glob:
            continue  # a dead letter, and a rule of questions
        told = question.destination and glob_matches(rule.destination_glob, question.destination)
        if rule.destination_glob and not told:
            continue
        if rule.team is not None:
            said = (rule.team if rule.team in able.teams else FIRST_TEAM, None)
        else:
            said = (FIRST_TEAM, rule.person if rule.person in able.people else None)
    return said


def owner(rules: Sequence[OwnershipRule], question: Question, able: Able) -> Owned:
    return owner_by(rules, question, able=able, first_team=FIRST_TEAM)


@given(lists_of_rules, questions, able)
def test_it_is_what_an_independent_reading_says(
    rules: list[OwnershipRule], question: Question, able: Able
) -> None:
    owned = owner(rules, question, able)
    assert (owned.team, owned.person) == model(rules, question, able)


@given(lists_of_rules, questions, able)
def test_nobody_who_cannot_act_owns_anything(
    rules: list[OwnershipRule], question: Question, able: Able
) -> None:
    owned = owner(rules, question, able)
    assert owned.team in {FIRST_TEAM, *able.teams}
    assert owned.person is None or owned.person in able.people
    assert (owned.rule is None) <= (owned == Owned(FIRST_TEAM))


@given(lists_of_rules, rules, questions, able)
def test_what_stands_below_a_rule_that_matches_is_never_asked(
    above: list[OwnershipRule], below: OwnershipRule, question: Question, able: Able
) -> None:
    if first_match(above, question) is not None:
        assert owner([*above, below], question, able) == owner(above, question, able)


@given(lists_of_rules, questions, able)
def test_a_rule_for_everything_answers_for_all_that_no_other_one_does(
    rules: list[OwnershipRule], question: Question, able: Able
) -> None:
    everybody = replace(able, teams=able.teams | {9})
    for_all = OwnershipRule("*", team=9, destination_glob="*" if question.destination else "")
    owned = owner([*rules, for_all], question, everybody)
    if first_match(rules, question) is None:
        assert owned == Owned(9, rule=len(rules))


@pytest.mark.parametrize(("team", "person"), [(None, None), (1, 2)])
def test_a_rule_names_a_team_or_a_person(team: int | None, person: int | None) -> None:
    with pytest.raises(ValueError, match="a team or a person"):
        OwnershipRule("*", team=team, person=person)


@given(rules, questions, able)
def test_dead_letters_and_questions_have_rules_of_their_own(
    rule: OwnershipRule, question: Question, able: Able
) -> None:
    if bool(rule.destination_glob) != bool(question.destination):
        assert owner([rule], question, able) == Owned(FIRST_TEAM)


@pytest.mark.parametrize("wrong", [{"person": 1}, {"team": 1, "reason": ReviewReason.UNKNOWN}])
def test_a_rule_of_dead_letters_names_a_team_and_no_reason(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="dead letters"):
        OwnershipRule("*", destination_glob="*", **wrong)
