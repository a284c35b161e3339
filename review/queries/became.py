"""What became of a question: who or what answered it, and what followed, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ledger.lifecycle.case import Case
from ledger.models import Attempt, Decision, ReviewItem
from ledger.rules.statements import Ended
from ledger.rules.states import State
from ledger.rules.vocabulary import OWNERSHIP, ConfirmedBy, DecisionKind, FailedBy, ReviewReason
from review.queries.values import Closing
from review.queries.words import REASON_WORDS, listed, plain

_K = DecisionKind


def closing_of(item: ReviewItem, decisions: Sequence[Decision]) -> Closing | None:
    """`decisions`: about this item, newest first, those that are votes with their approval."""
    if item.closed_at is None:
        return None
    deciding = [decision for decision in decisions if decision.kind not in OWNERSHIP]
    last = deciding[0] if deciding else None
    return Closing(
        at=item.closed_at,
        how=item.closed_how,
        words=_closing_words(item, deciding),
        decision=DecisionKind(last.kind) if last else None,
        by=last.by.get_username() if last else None,
    )


def became(item: ReviewItem, case: Case, closing: Closing, *, by_ledger: bool) -> str:
    """`Approved by ada → sent as attempt 2 → confirmed msg_000008`. `by_ledger`: who sends what waits."""
    attempt = case.attempt(item.attempt_id)
    return told(closing.words, *_followed(case, attempt, closing, waiting_words(by_ledger=by_ledger)))


def told(*steps: str) -> str:
    """Steps as one sentence."""
    text = " → ".join(steps)
    return text[:1].upper() + text[1:]


def waiting_words(*, by_ledger: bool) -> str:
    """What approved work waits for."""
    return "the ledger sends it itself" if by_ledger else "waits for its agent"


def approved_words(names: Sequence[str]) -> str:
    return f"approved by {listed(names)}"


def _closing_words(item: ReviewItem, deciding: Sequence[Decision]) -> str:
    words = _CLOSED.get(item.closed_how)
    return words(item.attempt, deciding) if words else plain(item.closed_how).lower()


def _by(deciding: Sequence[Decision]) -> str:
    """Whoever said what settled it, else who decided last."""
    said = [
        d for d in reversed(deciding) if hasattr(d, "statement") and d.statement.ended_how == Ended.SETTLED
    ]
    names = dict.fromkeys(decision.by.get_username() for decision in said or deciding[:1])
    return listed(list(names)) if names else "a person"


def _last(deciding: Sequence[Decision]) -> str:
    return deciding[0].kind if deciding else ""


def _approved(_attempt: Attempt, deciding: Sequence[Decision]) -> str:
    """By everybody whose yes is in the newest approval."""
    approving = [(d.vote.approval_id, d.by.get_username()) for d in deciding if hasattr(d, "vote")]
    newest = next((approval for approval, _ in approving if approval), None)
    names = [name for approval, name in reversed(approving) if approval == newest]
    return approved_words(names) if newest else "approved"


def _superseded(attempt: Attempt, deciding: Sequence[Decision]) -> str:
    used = any(
        decision.vote.approval is not None and decision.vote.approval.used_at is not None
        for decision in deciding
        if hasattr(decision, "vote")
    )
    if used:
        return _approved(attempt, deciding)
    if _last(deciding) == _K.RELINK_OPERATION:
        return f"relinked to {deciding[0].data['target_key']} by {_by(deciding)}"
    words = {
        _K.RELINK_ARGUMENTS.value: "corrected by {}",
        _K.CONFLICT_DUPLICATE.value: "recorded as a duplicate by {}",
        _K.CONFIRM_HAPPENED.value: "recorded as the same effect by {}",
        _K.REJECT.value: "rejected by {}",
    }
    return words.get(_last(deciding), "answered by another attempt").format(_by(deciding))


def _confirmed(attempt: Attempt, deciding: Sequence[Decision]) -> str:
    if attempt.confirmed_by == ConfirmedBy.LOOKUP:
        return "found by a look-up"
    if attempt.confirmed_by == ConfirmedBy.AGENT:
        return "reported by its agent"
    if _last(deciding) == _K.REJECT:
        return f"rejected by {_by(deciding)}, who says it happened"
    return f"confirmed by {_by(deciding)}"


def _failed(attempt: Attempt, deciding: Sequence[Decision]) -> str:
    if attempt.failed_by == FailedBy.OPERATOR:
        rejected = attempt.failure == "rejected"
        return f"{'rejected' if rejected else 'confirmed not to have happened'} by {_by(deciding)}"
    if attempt.failed_by == FailedBy.LOOKUP:
        return f"found by a look-up not to have happened ({plain(attempt.failure)})"
    if attempt.failed_by == FailedBy.AGENT:
        return f"reported by its agent as failed ({plain(attempt.failure)})"
    return plain(attempt.failure)


def _without_effect(attempt: Attempt, _deciding: Sequence[Decision]) -> str:
    if attempt.absent_by_lookup:
        return "found by a look-up not to have happened"
    if not attempt.failure:  # neither a look-up nor a report is behind it
        return "needs no answer: it only reads"
    return "reported by its agent not to have happened"


_CLOSED: Mapping[str, Callable[[Attempt, Sequence[Decision]], str]] = {
    State.INTENT_RECORDED: _approved,
    State.SUPERSEDED: _superseded,
    State.OUTCOME_CONFIRMED: _confirmed,
    State.FAILED: _failed,
    State.FAILED_RETRYABLE: _without_effect,
    State.CANCELLED: lambda _attempt, _deciding: "cancelled by its agent",
    "stands": lambda _attempt, deciding: f"left as it was by {_by(deciding)}",
    "duplicate_effect": lambda _attempt, deciding: f"recorded as a duplicate by {_by(deciding)}",
    "same_effect": lambda _attempt, _deciding: "found to be the same effect as the confirmed attempt",
}


def _followed(case: Case, attempt: Attempt, closing: Closing, waits: str) -> list[str]:
    """The sends and corrections that came of it, and where the last of them stands."""
    steps = []
    if closing.how == State.INTENT_RECORDED and attempt.dispatched_at is not None:
        steps.append(_sent(attempt))
    last = attempt
    while last.state == State.SUPERSEDED and (following := _following(case, last)):
        steps.append(_sent(following) if following.dispatched_at else _corrected(following))
        last = following
    if last.state == State.SUPERSEDED:
        last = case.confirmed or last
    if last is attempt and last.failure == "rejected" and closing.decision is _K.REJECT:
        return [*steps, f"rejected by {closing.by}"] if closing.how == State.INTENT_RECORDED else steps
    if last.state == State.INTENT_RECORDED:
        return [*steps, waits]
    said = last is attempt and last.is_final and closing.how == last.state
    return [*steps, *_standing(case, last, said=said)]


def _following(case: Case, attempt: Attempt) -> Attempt | None:
    return next((other for other in case.attempts if other.descends_from_id == attempt.pk), None)


def _sent(attempt: Attempt) -> str:
    return f"sent as attempt {attempt.number}" if attempt.number > 1 else "sent"


def _corrected(attempt: Attempt) -> str:
    return f"other arguments as attempt {attempt.number}"


def _standing(case: Case, attempt: Attempt, *, said: bool) -> tuple[str, ...]:
    """Where an attempt stands. `said`: how it was closed says so already."""
    if attempt.state == State.OUTCOME_CONFIRMED:
        reference = attempt.result_ref or attempt.provider_request_id
        by_person = said and attempt.confirmed_by == ConfirmedBy.OPERATOR
        if by_person:
            return (reference,) if reference else ()
        return (f"confirmed {reference}".strip(),)
    if said:
        return ()
    words = {
        State.DISPATCHED.value: "its outcome is not reported yet",
        State.UNKNOWN.value: "its outcome is being looked up",
        State.FAILED_RETRYABLE.value: (
            "a person is asked before it is sent again" if case.ever_held(attempt) else "may be sent again"
        ),
        State.FAILED.value: f"failed ({plain(attempt.failure)})",
        State.CANCELLED.value: "cancelled",
        State.SUPERSEDED.value: "replaced",
    }
    return (words.get(attempt.state) or _with_a_person(attempt),)


def _with_a_person(attempt: Attempt) -> str:
    words = REASON_WORDS[ReviewReason(attempt.reason)]
    return f"a person decides: {words[:1].lower()}{words[1:]}"
