"""What the fold of an operation's outcome reads of its stored attempts."""

from __future__ import annotations

from ledger.models import Attempt
from ledger.rules.outcome import FoldedAttempt
from ledger.rules.states import State


def is_variant(attempt: Attempt) -> bool:
    """Did it come in under the key of an operation that had other content?"""
    return attempt.number > 1 and attempt.descends_from_id is None


def folded(attempt: Attempt) -> FoldedAttempt:
    """A stored attempt as the fold sees it."""
    return FoldedAttempt(
        state=State(attempt.state),
        dispatched=attempt.dispatched_at is not None,
        maybe_sent=attempt.maybe_sent,
        relinked=attempt.relinked_to_id is not None,
        rejected=attempt.failure == "rejected",
        variant=is_variant(attempt),
    )
