"""The directive against the domain's table read the other way round: when each word may be said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.directive import Directive, StandingFacts, directive_of
from ledger.rules.states import State

facts = st.builds(
    StandingFacts,
    state=st.sampled_from([state for state in State if state is not State.OUTCOME_CONFIRMED]),
    any_confirmed=st.sampled_from([False, False, False, True]),
    on_hold=st.sampled_from([False, False, False, True]),
    approved=st.booleans(),
    backing_off=st.booleans(),
    ledger_executes=st.sampled_from([False, False, True]),
)


def model(standing: StandingFacts) -> str:
    """Every word's own condition, of which the first in the table's order is said."""
    state = standing.state.value
    open_question = state in ("UNKNOWN", "MANUAL_REVIEW")
    waits = state == "INTENT_RECORDED" or state == "FAILED_RETRYABLE" or (open_question and standing.approved)
    conditions = {
        "done": standing.any_confirmed,
        "hold": standing.on_hold or (state == "MANUAL_REVIEW" and not standing.approved),
        "reconcile": state == "UNKNOWN" and not standing.approved,
        "in_flight": state == "DISPATCHED"
        or (state == "FAILED_RETRYABLE" and standing.backing_off)
        or (waits and standing.ledger_executes),
        "dispatch": waits,
        "failed": state in ("FAILED", "CANCELLED", "SUPERSEDED"),
    }
    return next(word for word, holds in conditions.items() if holds)


@given(facts)
def test_the_first_row_that_holds(standing: StandingFacts) -> None:
    assert directive_of(standing) == model(standing)


@given(facts)
def test_dispatch_is_never_said_of_what_may_be_out(standing: StandingFacts) -> None:
    if directive_of(standing) is Directive.DISPATCH:
        assert not standing.any_confirmed
        assert standing.state is not State.DISPATCHED
        assert standing.approved or standing.state in (State.INTENT_RECORDED, State.FAILED_RETRYABLE)


@given(facts)
def test_what_is_confirmed_is_done_whatever_else_there_is(standing: StandingFacts) -> None:
    assert (directive_of(standing) is Directive.DONE) == standing.any_confirmed
