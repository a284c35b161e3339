"""When an operation enters an outcome: the fold, the settlement, its event and its deliveries."""

from __future__ import annotations

from ledger import outbox
from ledger.lifecycle.case import Case, is_variant
from ledger.models import Attempt, Settlement
from ledger.rules.outcome import FoldedAttempt, outcome_of
from ledger.rules.states import Outcome, State
from ledger.rules.vocabulary import EventKind


def settle(case: Case) -> None:
    """Bring the operation's outcome up to date with its attempts; each entry into a non-open one settles
    it."""
    outcome = outcome_of([folded(attempt) for attempt in case.attempts])
    if outcome == case.operation.outcome:
        return
    case.operation.outcome = outcome
    case.operation.save(update_fields=["outcome"])
    if outcome is not Outcome.OPEN:
        _settle(case, outcome)


def folded(attempt: Attempt) -> FoldedAttempt:
    """What the fold reads of a stored attempt."""
    return FoldedAttempt(
        state=State(attempt.state),
        dispatched=attempt.dispatched_at is not None,
        maybe_sent=attempt.maybe_sent,
        relinked=attempt.relinked_to_id is not None,
        rejected=attempt.failure == "rejected",
        variant=is_variant(attempt),
    )


def _settle(case: Case, outcome: Outcome) -> None:
    operation, attempt = case.operation, case.confirmed or case.newest
    planned = outbox.plan_deliveries(operation, tool=attempt.tool, outcome=outcome)
    operation.settlements_count += 1
    operation.save(update_fields=["settlements_count"])
    event = case.record(
        EventKind.SETTLED,
        attempt,
        outcome=outcome,
        number=operation.settlements_count,
        deliveries=[{"id": plan.delivery_id, "destination": plan.destination.pk} for plan in planned],
    )
    settlement = Settlement.objects.create(
        tenant_id=operation.tenant_id,
        operation=operation,
        number=operation.settlements_count,
        outcome=outcome,
        attempt=attempt,
        event=event,
        at=case.now,
    )
    outbox.enqueue(settlement, planned, now=case.now)
