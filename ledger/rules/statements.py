"""What people say became of something sent: when enough of them agree, and when they contradict another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ledger.rules.states import State
from ledger.rules.vocabulary import HIGH_RISK, Effect


class Says(StrEnum):
    """One answer to the question what became of it."""

    HAPPENED = "happened"
    DID_NOT = "did_not"


class Ended(StrEnum):
    """How a statement stopped counting."""

    SETTLED = "settled"
    REPLACED = "said otherwise since"
    RIGHT_LOST = "may no longer decide"
    CONTRADICTED = "contradicted by what became of it"
    ANSWERED = "answered in another way"


@dataclass(frozen=True)
class Said:
    """One person's standing statement; `reference` empty where they name none."""

    by: int
    says: Says
    reference: str = ""


@dataclass(frozen=True)
class Verdict:
    """What the statements lead to. `settles`: enough people say this, with `reference` as far as one of them
    names it; `contradict`: people say different things, and nothing follows."""

    settles: Says | None = None
    reference: str = ""
    contradict: bool = False


def people_needed(*effects: Effect) -> int:
    """How many must say the same: two where one of the effects is dangerous."""
    return 2 if set(effects) & HIGH_RISK else 1


def verdict(said: Sequence[Said], *, needed: int) -> Verdict:
    """`said`: the standing statements, the newest last, one of each person. A single one settles nothing
    where two are needed, and two that name different records do not agree."""
    newest = said[-1]
    agreeing = [one for one in said if _agree(one, newest)]
    if len({one.by for one in agreeing}) >= needed:
        named = [one.reference for one in (newest, *agreeing) if one.reference]
        return Verdict(newest.says, named[0] if named else "")
    return Verdict(contradict=len(agreeing) < len(said))


def ended_by(says: Says, to: State) -> Ended:
    """What a move of the attempt makes of a statement that still stands."""
    if to is State.OUTCOME_CONFIRMED:
        return Ended.SETTLED if says is Says.HAPPENED else Ended.CONTRADICTED
    if to in (State.FAILED, State.FAILED_RETRYABLE):
        return Ended.SETTLED if says is Says.DID_NOT else Ended.CONTRADICTED
    return Ended.ANSWERED


def _agree(one: Said, other: Said) -> bool:
    same_record = not one.reference or not other.reference or one.reference == other.reference
    return one.says is other.says and same_record
