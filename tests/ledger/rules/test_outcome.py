"""The outcome of an operation: a fold against a model that asks each question of the domain in turn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.outcome import FoldedAttempt, decided_by, outcome_of
from ledger.rules.states import State

attempts = st.builds(
    FoldedAttempt,
    state=st.sampled_from(State),
    dispatched=st.booleans(),
    maybe_sent=st.sampled_from([False, False, True]),
    relinked=st.sampled_from([False, False, True]),
    rejected=st.booleans(),
    variant=st.booleans(),
)
histories = st.lists(attempts, min_size=1, max_size=4)


def counts(attempt: FoldedAttempt) -> bool:
    if attempt.state == "MANUAL_REVIEW":
        return attempt.dispatched or attempt.maybe_sent
    return attempt.state != "SUPERSEDED" or attempt.relinked


def closed_variant(attempt: FoldedAttempt) -> bool:
    return attempt.variant and not attempt.dispatched and (attempt.rejected or attempt.relinked)


def open_still(attempt: FoldedAttempt) -> bool:
    if attempt.state == "MANUAL_REVIEW":
        return attempt.dispatched or attempt.maybe_sent
    return attempt.state in {"INTENT_RECORDED", "DISPATCHED", "UNKNOWN", "FAILED_RETRYABLE"}


def model(history: list[FoldedAttempt]) -> str:
    if any(attempt.state == "OUTCOME_CONFIRMED" for attempt in history):
        return "confirmed"
    counted = [attempt for attempt in history if counts(attempt)]
    if any(not closed_variant(attempt) for attempt in counted):
        counted = [attempt for attempt in counted if not closed_variant(attempt)]
    if not counted or any(open_still(attempt) for attempt in counted):
        return "open"
    return {"CANCELLED": "cancelled", "SUPERSEDED": "relinked"}.get(counted[-1].state, "failed")


@given(histories)
def test_the_fold_is_the_domains(history: list[FoldedAttempt]) -> None:
    assert outcome_of(history) == model(history)


@given(histories)
def test_an_outcome_is_that_of_one_attempt_alone(history: list[FoldedAttempt]) -> None:
    if outcome_of(history) != "open":
        assert outcome_of([history[decided_by(history)]]) == outcome_of(history)


@given(histories, st.integers(0, 4))
def test_what_is_held_or_replaced_changes_nothing(history: list[FoldedAttempt], at: int) -> None:
    held = FoldedAttempt(State.MANUAL_REVIEW, dispatched=False, variant=True)
    replaced = FoldedAttempt(State.SUPERSEDED, dispatched=True)
    for extra in (held, replaced):
        longer = [*history[:at], extra, *history[at:]]
        assert outcome_of(longer) == outcome_of(history)


@given(histories)
def test_a_confirmed_attempt_settles_whatever_stands_beside_it(history: list[FoldedAttempt]) -> None:
    confirmed = FoldedAttempt(State.OUTCOME_CONFIRMED, dispatched=True)
    assert outcome_of([confirmed, *history]) == outcome_of([*history, confirmed]) == "confirmed"


def test_a_rejected_variant_leaves_the_word_to_the_first() -> None:
    first = FoldedAttempt(State.CANCELLED, dispatched=False)
    variant = FoldedAttempt(State.FAILED, dispatched=False, rejected=True, variant=True)
    assert outcome_of([first, variant]) == "cancelled"
    assert outcome_of([variant]) == "failed"


def test_nothing_that_counts_is_open() -> None:
    assert outcome_of([FoldedAttempt(State.SUPERSEDED, dispatched=True)]) == "open"
