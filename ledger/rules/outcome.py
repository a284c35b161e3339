"""The outcome of an operation: a pure fold of its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.rules.states import Outcome, State, is_live


@dataclass(frozen=True)
class FoldedAttempt:
    """What the fold reads of one attempt. `variant`: it came in under the operation's key with other
    content."""

    state: State
    dispatched: bool
    maybe_sent: bool = False
    relinked: bool = False
    rejected: bool = False
    variant: bool = False


def outcome_of(attempts: Sequence[FoldedAttempt]) -> Outcome:
    """`confirmed` if any attempt is; else `open` while one is live, perhaps sent and undecided, or none
    counts; else what became of the newest one that counts. Attempts are given oldest first."""
    counted = [attempts[index] for index in _counted(attempts)]
    if any(attempt.state is State.OUTCOME_CONFIRMED for attempt in attempts):
        return Outcome.CONFIRMED
    if not counted or any(_is_open(attempt) for attempt in counted):
        return Outcome.OPEN
    return _closed_as(counted[-1])


def decided_by(attempts: Sequence[FoldedAttempt]) -> int:
    """The index of the attempt that an outcome other than `open` is of."""
    confirmed = [index for index, one in enumerate(attempts) if one.state is State.OUTCOME_CONFIRMED]
    return confirmed[0] if confirmed else _counted(attempts)[-1]


def _counted(attempts: Sequence[FoldedAttempt]) -> list[int]:
    counting = [index for index, one in enumerate(attempts) if not _left_out(one)]
    deciding = [index for index in counting if not _closed_variant(attempts[index])]
    return deciding or counting


def _left_out(attempt: FoldedAttempt) -> bool:
    held = attempt.state is State.MANUAL_REVIEW and not (attempt.dispatched or attempt.maybe_sent)
    replaced = attempt.state is State.SUPERSEDED and not attempt.relinked
    return held or replaced


def _closed_variant(attempt: FoldedAttempt) -> bool:
    return attempt.variant and not attempt.dispatched and (attempt.rejected or attempt.relinked)


def _is_open(attempt: FoldedAttempt) -> bool:
    undecided = attempt.maybe_sent and attempt.state in (State.MANUAL_REVIEW, State.UNKNOWN)
    return undecided or is_live(attempt.state, dispatched=attempt.dispatched)


def _closed_as(attempt: FoldedAttempt) -> Outcome:
    if attempt.state is State.SUPERSEDED:
        return Outcome.RELINKED
    return Outcome.CANCELLED if attempt.state is State.CANCELLED else Outcome.FAILED
