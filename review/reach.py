"""For which questions rules of ownership hold when they are saved, beside all that open from then on."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Reach(StrEnum):
    """What is open moves only as far as this says."""

    NEW = "new"
    UNOWNED = "unowned"
    ALL = "all"


REACH_WORDS: Mapping[Reach, str] = {
    Reach.NEW: "New ones only",
    Reach.UNOWNED: "New ones, and open ones that nobody in particular owns",
    Reach.ALL: "New ones, and every open one, whoever owns it",
}
