"""What is known of an operation's earlier attempts, so that their records are told from a later one's."""

from __future__ import annotations

from ledger.lifecycle.case import Case
from ledger.models import Attempt
from ledger.rules.reconcile import Earlier
from ledger.rules.states import State


def earlier_than(case: Case, attempt: Attempt) -> tuple[Earlier, ...]:
    """The attempts before this one, oldest first. What names this one too is not told by it."""
    own = _references(attempt)
    return tuple(
        Earlier(references=_references(other) - own, confirmed=other.state == State.OUTCOME_CONFIRMED)
        for other in case.attempts
        if other.number < attempt.number
    )


def _references(attempt: Attempt) -> frozenset[str]:
    return frozenset({attempt.result_ref, attempt.provider_request_id} - {""})
