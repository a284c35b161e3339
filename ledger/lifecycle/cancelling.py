"""Cancel an operation: what was not sent never will be; what was sent is still found out."""

from __future__ import annotations

from ledger.events import agent_actor
from ledger.lifecycle.case import Case
from ledger.lifecycle.locking import locked_operation
from ledger.lifecycle.moves import look_again, move, void_all_approvals
from ledger.lifecycle.settled_by import fail
from ledger.lifecycle.standing import standing_in
from ledger.lifecycle.values import Standing
from ledger.models import ApiKey, Attempt
from ledger.rules.states import State
from ledger.rules.vocabulary import WHETHER_TO_SEND, EventKind, FailedBy


def cancel_operation(*, key: ApiKey, operation_id: str, reason: str) -> Standing:
    """Withdraw the operation. What is already sent is not undone: look-ups go on, no new send follows."""
    with locked_operation(operation_id, tenant_id=key.tenant_id, actor=agent_actor(key.agent)) as case:
        if case.operation.cancelled_at is None:
            _cancel(case, reason)
        return standing_in(case, case.newest)


def _cancel(case: Case, reason: str) -> None:
    operation = case.operation
    operation.cancelled_at, operation.cancel_reason = case.now, reason
    operation.save(update_fields=["cancelled_at", "cancel_reason"])
    case.record(EventKind.OPERATION_CANCELLED, reason=reason)
    void_all_approvals(case, "operation cancelled")
    for attempt in case.attempts:
        _withdraw(case, attempt)


def _withdraw(case: Case, attempt: Attempt) -> None:
    if attempt.state == State.INTENT_RECORDED or attempt.is_held:
        move(case, attempt, State.CANCELLED, failure="cancelled")
    elif attempt.state == State.FAILED_RETRYABLE:
        by = FailedBy.LOOKUP if attempt.absent_by_lookup else FailedBy.AGENT
        fail(case, attempt, by=by, failure="cancelled")
    elif attempt.state == State.MANUAL_REVIEW and attempt.reason in WHETHER_TO_SEND:
        _find_out(case, attempt)


def _find_out(case: Case, attempt: Attempt) -> None:
    """Nobody has to decide any more whether to send it. Where its agent knew that nothing had happened, that
    is the end; else whether it happened is left, and is looked up."""
    live = case.live()
    if attempt.failure and not (attempt.success_reported or attempt.positive_evidence):
        fail(case, attempt, by=FailedBy.AGENT, failure="cancelled")
    elif live is None or live.pk == attempt.pk:
        look_again(case, attempt)
