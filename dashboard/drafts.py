"""Rules of ownership while they are typed: the draft lives in the form alone, whatever button is pressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict

from review.ownership_rules import MOST_RULES, TypedRule

COLUMNS = ("tool", "reason", "effect", "owner", "destination")


@dataclass(frozen=True)
class DraftRow:
    """One rule of a draft, and what is wrong with each of its fields."""

    rule: TypedRule
    faults: tuple[tuple[str, str], ...] = ()

    @property
    def wrong(self) -> dict[str, str]:
        return dict(self.faults)


def draft_in(typed: QueryDict) -> list[TypedRule]:
    """The rules as they stand in the form."""
    columns = [typed.getlist(name)[: MOST_RULES + 1] for name in COLUMNS]
    columns[-1] = columns[-1] or [""] * len(columns[0])
    return [TypedRule(*(value.strip() for value in row)) for row in zip(*columns, strict=False)]


def rearranged(draft: Sequence[TypedRule], press: str) -> list[TypedRule]:
    """The draft after `add`, or after `up-1`, `down-1`, `remove-1` (places from 1); else as it is."""
    rules = list(draft)
    if press == "add":
        return [*rules, TypedRule("")]
    verb, _, number = press.partition("-")
    at = int(number) - 1 if number.isascii() and number.isdecimal() and len(number) < 4 else -1
    if not 0 <= at < len(rules):
        return rules
    rule = rules.pop(at)
    if verb == "remove":
        return rules
    rules.insert(max(0, at + {"up": -1, "down": 1}.get(verb, 0)), rule)
    return rules


def rows_of(draft: Sequence[TypedRule], faults: Sequence[tuple[int, str, str]] = ()) -> list[DraftRow]:
    return [
        DraftRow(rule, tuple((field, message) for at, field, message in faults if at == place))
        for place, rule in enumerate(draft)
    ]
