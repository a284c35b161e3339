"""Two versions of a short text, line by line."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import ndiff
from enum import StrEnum


class Side(StrEnum):
    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True)
class Line:
    side: Side
    text: str


_SIDES = {"  ": Side.SAME, "- ": Side.REMOVED, "+ ": Side.ADDED}
LONGEST = 20_000


def changed_lines(before: str, after: str) -> tuple[Line, ...]:
    """Every line of both texts with its side; empty where they are equal."""
    if before.strip() == after.strip():
        return ()
    compared = ndiff(before[:LONGEST].strip().splitlines(), after[:LONGEST].strip().splitlines())
    return tuple(Line(_SIDES[line[:2]], line[2:]) for line in compared if line[:2] in _SIDES)
