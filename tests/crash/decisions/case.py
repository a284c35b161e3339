"""What a press is, and the words of all cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ledger.models import Attempt, Decision, User
from ledger.rules.vocabulary import DecisionKind
from tests.support import make
from tests.support.cast import Cast

About = Mapping[str, Any]
"""What a press is about, as JSON: names and ids."""
WHY = "decided at night"
SLUG = "acme"


@dataclass(frozen=True)
class Case:
    """One kind of press. `prepare` makes a new thing for it to be about, the `number`th; `done` counts how
    often it has taken effect there."""

    prepare: Callable[[Cast, int], About]
    press: Callable[[About], object]
    done: Callable[[About], int]


def who(username: str) -> User:
    return User.objects.get(username=username)


def item(attempt: Attempt) -> About:
    return {"item": make.item_of(attempt).pk}


def held(people: Cast, _: int) -> About:
    return item(make.held(people.key))


def sent(people: Cast, _: int) -> About:
    return item(make.for_a_person(people.key))


def by_two(people: Cast, _: int) -> About:
    return item(make.variant_in_review(people.key))


def of(kind: DecisionKind) -> Callable[[About], int]:
    found = Decision.objects.filter(kind=kind, by__username="operator")
    return lambda about: found.filter(item_id=about["item"]).count()


def on_item(case: Callable[[Cast, int], About], kind: DecisionKind, press: Callable[..., object]) -> Case:
    return Case(case, lambda about: press(who("operator"), about["item"], about), of(kind))


def again(case: Case) -> Case:
    """What may be said again without harm, such as a note: it counts once."""
    return replace(case, done=lambda about: min(1, case.done(about)))
