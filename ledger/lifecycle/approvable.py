"""Whether a new send of an attempt can be approved now, whoever asks."""

from __future__ import annotations

from ledger.authority import authority_to_approve
from ledger.lifecycle.case import Case
from ledger.lifecycle.freshness import proven_absent_lately
from ledger.lifecycle.values import DecisionRefused
from ledger.models import Attempt
from ledger.rules.authority import Refused
from ledger.rules.states import OPEN_QUESTION, WAITS_FOR_AGENT, State


def why_not_approvable(case: Case, attempt: Attempt) -> DecisionRefused | None:
    """Why a new send of this attempt cannot be approved now, whoever asks; None where it can."""
    return _wrong_state(case, attempt) or _other_attempts(case, attempt) or _authority(case, attempt)


def _wrong_state(case: Case, attempt: Attempt) -> DecisionRefused | None:
    waits_for_agent = attempt.state == State.INTENT_RECORDED and attempt.held_at is not None
    if attempt.state not in OPEN_QUESTION and not waits_for_agent:
        return DecisionRefused("not-offered", f"The attempt is {attempt.state}: there is nothing to approve.")
    if attempt.args_bytes is None:
        return DecisionRefused(
            "hash-only", "Only the hash of the arguments is known, so nobody can approve them."
        )
    if attempt.closed_to_sending_at is not None:
        return DecisionRefused("rejected", "It was rejected: closed to sending for ever.")
    if not proven_absent_lately(attempt, case.now) and attempt.pk not in case.approvals:
        return DecisionRefused(
            "recheck-first",
            "Re-check first: a new send may only follow a look-up under 5 minutes old that found nothing.",
        )
    return None


def _other_attempts(case: Case, attempt: Attempt) -> DecisionRefused | None:
    if case.confirmed is not None:
        return DecisionRefused("already-done", f"Attempt {case.confirmed.number} is confirmed: it was done.")
    if case.has_open_conflict:
        return DecisionRefused("conflict-open", "What is known contradicts itself: decide that first.")
    live = case.live()
    if live is not None and live.pk != attempt.pk and not gives_way(live, attempt):
        return DecisionRefused(
            "other-attempt-live", f"Attempt {live.number} is {live.state}: it must be settled first."
        )
    if case.undecided_send_beside(attempt):
        return DecisionRefused("other-attempt-live", "Another attempt may have been sent: decide that first.")
    return None


def _authority(case: Case, attempt: Attempt) -> DecisionRefused | None:
    authority = authority_to_approve(case.operation, attempt, now=case.now)
    if not isinstance(authority, Refused):
        return None
    reasons = tuple(str(reason) for reason in authority.reasons)
    why = f"A send would be refused: {', '.join((*reasons, *authority.because))}."
    return DecisionRefused("authority", why, (*reasons, *authority.because))


def gives_way(live: Attempt, attempt: Attempt) -> bool:
    """What was not sent, or proven to have had no effect, gives way to a held attempt with other content."""
    return attempt.is_held and attempt.number > 1 and live.state in WAITS_FOR_AGENT
