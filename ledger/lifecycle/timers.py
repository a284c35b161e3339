"""What time alone may do: end a lease, an approval, a wait that never began. Never a retry, never a failure
of something sent."""

from __future__ import annotations

from ledger.events import SYSTEM
from ledger.lifecycle.items import open_or_change
from ledger.lifecycle.locking import locked_attempt
from ledger.lifecycle.moves import move, void_approval
from ledger.lifecycle.settled_by import fail
from ledger.rules.states import OPEN_QUESTION, State
from ledger.rules.vocabulary import RECEIPT_IS_ONLY_EVIDENCE, EventKind, FailedBy, ReviewReason


def end_send_lease(*, attempt_id: str) -> bool:
    """A send lease that ran out: contact is lost, so the outcome is UNKNOWN and looked up at once."""
    with locked_attempt(attempt_id, tenant_id=None, actor=SYSTEM) as (case, attempt):
        over = attempt.lease_until is not None and attempt.lease_until <= case.now
        if attempt.state != State.DISPATCHED or not over:
            return False
        said = {"because": "the send lease ran out", "lease_until": str(attempt.lease_until)}
        move(case, attempt, State.UNKNOWN, reason=ReviewReason.UNKNOWN, said=said)
        return True


def end_wait_for_agent(*, attempt_id: str) -> bool:
    """Nothing was sent, or nothing happened, and the agent did not come in time: FAILED `not_started`."""
    with locked_attempt(attempt_id, tenant_id=None, actor=SYSTEM) as (case, attempt):
        over = attempt.start_by is not None and attempt.start_by <= case.now
        if not over or attempt.pk in case.approvals:
            return False
        fail(case, attempt, by=FailedBy.NOT_STARTED, failure="not_started")
        return True


def end_approval(*, attempt_id: str) -> bool:
    """An approval that expired unused brings its attempt back to the desk. What was found there stays the
    question: a receipt must not settle it because of that."""
    with locked_attempt(attempt_id, tenant_id=None, actor=SYSTEM) as (case, attempt):
        approval = case.approvals.get(attempt.pk)
        if approval is None or case.now < approval.expires_at:
            return False
        void_approval(case, attempt, "expired")
        if attempt.state in OPEN_QUESTION and attempt.reason not in RECEIPT_IS_ONLY_EVIDENCE:
            case.change(attempt, reason=ReviewReason.APPROVAL_EXPIRED)
            open_or_change(case, attempt, ReviewReason.APPROVAL_EXPIRED)
        case.record(EventKind.APPROVAL_EXPIRED, attempt, approval=approval.pk)
        return True
