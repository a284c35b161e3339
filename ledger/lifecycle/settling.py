"""When an operation enters an outcome: the fold, the settlement, its event and its deliveries."""

from __future__ import annotations

from ledger import outbox
from ledger.lifecycle.case import Case
from ledger.models import Attempt, Settlement
from ledger.queries.outcomes import folded
from ledger.rules.outcome import decided_by, outcome_of
from ledger.rules.states import Outcome
from ledger.rules.vocabulary import EventKind


def settle(case: Case) -> None:
    """Bring the operation's outcome up to date with its attempts; each entry into a non-open one settles
    it."""
    attempts = [folded(attempt) for attempt in case.attempts]
    outcome = outcome_of(attempts)
    if outcome == case.operation.outcome:
        return
    case.operation.outcome = outcome
    case.pen.change(case.operation, "outcome")
    if outcome is not Outcome.OPEN:
        _settle(case, outcome, case.attempts[decided_by(attempts)])


def _settle(case: Case, outcome: Outcome, attempt: Attempt) -> None:
    """`attempt`: the one it is the outcome of, which names the tool that consumers hear of."""
    operation = case.operation
    planned = outbox.plan_deliveries(operation, tool=attempt.tool, outcome=outcome)
    operation.settlements_count += 1
    case.pen.change(operation, "settlements_count")
    event = case.record(
        EventKind.SETTLED,
        attempt,
        outcome=outcome,
        number=operation.settlements_count,
        deliveries=[{"id": plan.delivery_id, "destination": plan.destination.pk} for plan in planned],
    )
    settlement = Settlement(
        tenant=attempt.agent.tenant,
        operation=operation,
        number=operation.settlements_count,
        outcome=outcome,
        attempt=attempt,
        event=event,
        at=case.now,
    )
    case.pen.settle(settlement, planned, now=case.now)
