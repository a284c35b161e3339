"""Both state machines, each one table of legal moves.

The tables are the only source: the check in Python and the PostgreSQL triggers are generated from them
(`ledger.models.triggers`), and a test holds each against the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where one attempt stands."""

    INTENT_RECORDED = "INTENT_RECORDED"
    DISPATCHED = "DISPATCHED"
    UNKNOWN = "UNKNOWN"
    MANUAL_REVIEW = "MANUAL_REVIEW"
    FAILED_RETRYABLE = "FAILED_RETRYABLE"
    OUTCOME_CONFIRMED = "OUTCOME_CONFIRMED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SUPERSEDED = "SUPERSEDED"


class Guard(StrEnum):
    """What must hold of the attempt beside its state for a move to be legal."""

    ALWAYS = "always"
    HELD = "held"  # never sent
    SENT = "sent"  # leave was given, or somebody says it was sent without
    MAYBE_SENT = "maybe_sent"  # only on unfence and in the restore watch
    CONFLICT = "conflict"  # a person corrects a final state on a conflicting_evidence item


@dataclass(frozen=True)
class Move:
    """One legal move of an attempt."""

    source: State
    target: State
    guard: Guard = Guard.ALWAYS


_S = State

MOVES: tuple[Move, ...] = (
    Move(_S.INTENT_RECORDED, _S.DISPATCHED),
    Move(_S.INTENT_RECORDED, _S.MANUAL_REVIEW),
    Move(_S.INTENT_RECORDED, _S.SUPERSEDED),
    Move(_S.INTENT_RECORDED, _S.FAILED),
    Move(_S.INTENT_RECORDED, _S.CANCELLED),
    Move(_S.INTENT_RECORDED, _S.UNKNOWN, Guard.MAYBE_SENT),
    Move(_S.DISPATCHED, _S.OUTCOME_CONFIRMED),
    Move(_S.DISPATCHED, _S.FAILED_RETRYABLE),
    Move(_S.DISPATCHED, _S.FAILED),
    Move(_S.DISPATCHED, _S.UNKNOWN),
    Move(_S.UNKNOWN, _S.OUTCOME_CONFIRMED),
    Move(_S.UNKNOWN, _S.FAILED_RETRYABLE),
    Move(_S.UNKNOWN, _S.FAILED),
    Move(_S.UNKNOWN, _S.MANUAL_REVIEW),
    Move(_S.UNKNOWN, _S.SUPERSEDED),
    Move(_S.MANUAL_REVIEW, _S.OUTCOME_CONFIRMED),
    Move(_S.MANUAL_REVIEW, _S.FAILED),
    Move(_S.MANUAL_REVIEW, _S.SUPERSEDED),
    Move(_S.MANUAL_REVIEW, _S.INTENT_RECORDED, Guard.HELD),
    Move(_S.MANUAL_REVIEW, _S.CANCELLED, Guard.HELD),
    Move(_S.MANUAL_REVIEW, _S.UNKNOWN, Guard.SENT),
    Move(_S.FAILED_RETRYABLE, _S.SUPERSEDED),
    Move(_S.FAILED_RETRYABLE, _S.FAILED),
    Move(_S.FAILED_RETRYABLE, _S.OUTCOME_CONFIRMED),
    Move(_S.FAILED_RETRYABLE, _S.MANUAL_REVIEW),
    Move(_S.FAILED_RETRYABLE, _S.UNKNOWN, Guard.MAYBE_SENT),
    Move(_S.FAILED, _S.OUTCOME_CONFIRMED, Guard.CONFLICT),
    Move(_S.CANCELLED, _S.OUTCOME_CONFIRMED, Guard.CONFLICT),
    Move(_S.SUPERSEDED, _S.OUTCOME_CONFIRMED, Guard.CONFLICT),
)

FIRST_STATES = (State.INTENT_RECORDED, State.MANUAL_REVIEW)
FINAL = frozenset({State.OUTCOME_CONFIRMED, State.FAILED, State.CANCELLED, State.SUPERSEDED})
OPEN_QUESTION = frozenset({State.UNKNOWN, State.MANUAL_REVIEW})
WAITS_FOR_AGENT = frozenset({State.INTENT_RECORDED, State.FAILED_RETRYABLE})
ALWAYS_LIVE = frozenset({State.INTENT_RECORDED, State.DISPATCHED, State.UNKNOWN, State.FAILED_RETRYABLE})

_GUARDS: Mapping[tuple[State, State], Guard] = {(move.source, move.target): move.guard for move in MOVES}


class IllegalMove(Exception):
    """An attempt can never go from this state to that one; the row is left as it was."""


def check_move(source: State, target: State, *, sent: bool, maybe_sent: bool, conflict_open: bool) -> None:
    """Raise `IllegalMove` unless the table allows this move of an attempt with these facts."""
    guard = _GUARDS.get((source, target))
    held_by = {
        Guard.ALWAYS: True,
        Guard.HELD: not sent,
        Guard.SENT: sent,
        Guard.MAYBE_SENT: maybe_sent,
        Guard.CONFLICT: conflict_open,
    }
    if guard is None or not held_by[guard]:
        raise IllegalMove(f"{source} may not become {target}" + (f" ({guard} only)" if guard else ""))


def is_live(state: State, *, dispatched: bool) -> bool:
    """Whether an attempt in this state occupies the one live place of its operation."""
    return state in ALWAYS_LIVE or (state is State.MANUAL_REVIEW and dispatched)


class DeliveryState(StrEnum):
    """Where one consumer's copy of one settlement stands."""

    PENDING = "PENDING"
    SENT = "SENT"
    ACKED = "ACKED"
    DEAD_LETTERED = "DEAD_LETTERED"


_D = DeliveryState

DELIVERY_MOVES: tuple[tuple[DeliveryState, DeliveryState], ...] = (
    (_D.PENDING, _D.SENT),
    (_D.PENDING, _D.ACKED),
    (_D.PENDING, _D.DEAD_LETTERED),
    (_D.SENT, _D.ACKED),
    (_D.SENT, _D.DEAD_LETTERED),
    (_D.DEAD_LETTERED, _D.PENDING),
    (_D.DEAD_LETTERED, _D.ACKED),
)


class Outcome(StrEnum):
    """What became of an operation: a pure fold of its attempts (`ledger.rules.outcome`)."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RELINKED = "relinked"
