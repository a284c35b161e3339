"""What an agent that asks about its attempt must do: the first row that holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ledger.rules.states import State


class Directive(StrEnum):
    """The one word an agent obeys."""

    DONE = "done"
    HOLD = "hold"
    RECONCILE = "reconcile"
    IN_FLIGHT = "in_flight"
    DISPATCH = "dispatch"
    FAILED = "failed"


@dataclass(frozen=True)
class StandingFacts:
    """What the directive of one attempt rests on.

    `on_hold`: a conflict is open, or a held variant of the operation keeps its siblings from leave.
    """

    state: State
    any_confirmed: bool
    on_hold: bool
    approved: bool
    backing_off: bool
    ledger_executes: bool


Row = tuple[Callable[[StandingFacts], bool], Directive]

ROWS: tuple[Row, ...] = (
    (lambda facts: facts.any_confirmed, Directive.DONE),
    (lambda facts: facts.on_hold, Directive.HOLD),
    (lambda facts: facts.state is State.MANUAL_REVIEW and not facts.approved, Directive.HOLD),
    (lambda facts: facts.state is State.UNKNOWN and not facts.approved, Directive.RECONCILE),
    (lambda facts: facts.state is State.DISPATCHED, Directive.IN_FLIGHT),
    (lambda facts: facts.state is State.FAILED_RETRYABLE and facts.backing_off, Directive.IN_FLIGHT),
    (
        lambda facts: facts.state in (State.FAILED, State.CANCELLED, State.SUPERSEDED),
        Directive.FAILED,
    ),
    (lambda facts: facts.ledger_executes, Directive.IN_FLIGHT),
    (lambda _facts: True, Directive.DISPATCH),
)


def directive_of(facts: StandingFacts) -> Directive:
    """The word for these facts. A SUPERSEDED attempt answers by its descendant; the caller resolves that
    first."""
    return next(directive for holds, directive in ROWS if holds(facts))
