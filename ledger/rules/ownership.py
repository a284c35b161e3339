"""Whose a new question or dead letter is: ordered rules, of which the first that matches names a team or a
person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.rules.pointers import glob_matches
from ledger.rules.vocabulary import Effect, ReviewReason


@dataclass(frozen=True)
class Question:
    """What the rules are asked about. A dead letter has the name of its `destination`, and no reason."""

    tool: str
    reason: ReviewReason | None
    effect: Effect
    destination: str = ""


@dataclass(frozen=True)
class OwnershipRule:
    """One line of the rules; `reason` and `effect` None: every one. It names a team or a person, by id.

    With a `destination_glob` it is about dead letters alone, which have no reason and are teams'.
    """

    tool_glob: str
    reason: ReviewReason | None = None
    effect: Effect | None = None
    team: int | None = None
    person: int | None = None
    destination_glob: str = ""

    def __post_init__(self) -> None:
        if (self.team is None) == (self.person is None):
            raise ValueError("a rule of ownership names a team or a person")
        if self.destination_glob and (self.team is None or self.reason is not None):
            raise ValueError("a rule of dead letters names a team, and no reason")

    def matches(self, question: Question) -> bool:
        return (
            glob_matches(self.tool_glob, question.tool)
            and self.reason in (None, question.reason)
            and self.effect in (None, question.effect)
            and bool(self.destination_glob) == bool(question.destination)
            and glob_matches(self.destination_glob, question.destination)
        )


@dataclass(frozen=True)
class Able:
    """Who can own work: teams in which somebody decides, people who decide themselves; by id."""

    teams: frozenset[int] = frozenset()
    people: frozenset[int] = frozenset()

    def includes(self, rule: OwnershipRule) -> bool:
        """Can whom the rule names act?"""
        return rule.team in self.teams if rule.person is None else rule.person in self.people


@dataclass(frozen=True)
class Owned:
    """The owner of a question: always a team, perhaps one person. `rule`: the place of the rule that said so,
    from 0; None where none did, or where whom it names cannot act."""

    team: int
    person: int | None = None
    rule: int | None = None


def first_match(rules: Sequence[OwnershipRule], question: Question) -> int | None:
    """The place of the rule that decides about this question."""
    return next((place for place, rule in enumerate(rules) if rule.matches(question)), None)


def owner_by(rules: Sequence[OwnershipRule], question: Question, *, able: Able, first_team: int) -> Owned:
    """The owner by the first rule that matches; the tenant's first team where none does or nobody it names
    can act. The rules below it are not asked then: they were written for other questions."""
    place = first_match(rules, question)
    if place is None or not able.includes(rules[place]):
        return Owned(first_team)
    team = rules[place].team
    return Owned(first_team if team is None else team, rules[place].person, place)
