"""The page of one operation: what was executed, and who was told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ledger.lifecycle import unlocked_case
from ledger.models import Attempt, Operation, User
from ledger.queries.arguments import sentence_of, stored_args
from ledger.rules.masks import Veil, one_veil, veil_of
from ledger.rules.policy import Rule
from review.door import enter_row
from review.queries.history import chain_views, events_of
from review.queries.lane_values import Lanes
from review.queries.lanes import lanes_of
from review.queries.marked import Segment, marked_text
from review.queries.page import AttemptView, EventView
from review.queries.tenants import tenant_view
from review.queries.urgency import rules_of_pairs
from review.queries.values import TenantView, number_in
from review.rights import Rights


@dataclass(frozen=True)
class OperationPage:
    """Both lanes and 100 events of its history, newest first; `older` is the number to go on before."""

    operation_id: str
    tenant: TenantView
    operation_key: str
    tool: str
    outcome: str
    sentence: tuple[Segment, ...]
    run: str
    step: str
    created_at: datetime
    chain: tuple[AttemptView, ...]
    lanes: Lanes
    events: tuple[EventView, ...]
    events_total: int
    older: int | None
    rights: Rights
    as_of: datetime


def operation_page(user: User, operation_id: str, *, before: str = "") -> OperationPage:
    """Raises `NotVisible`, and `BadFilter` where `before` is no number of an event."""
    found = Operation.objects.select_related("tenant", "run").filter(pk=operation_id).first()
    operation, rights = enter_row(user, found, operation_id)
    case = unlocked_case(operation)
    rules = rules_of_pairs({(attempt.policy_id, attempt.tool) for attempt in case.attempts}).rules
    veil = _veil_over_all(
        (attempt, rules.get((attempt.policy_id, attempt.tool))) for attempt in case.attempts
    )
    newest = case.newest
    number = number_in("before", before, "An event has a number.")
    events = events_of(operation, case.attempts, veil, before=number)
    return OperationPage(
        operation_id=operation.pk,
        tenant=tenant_view(operation.tenant),
        operation_key=operation.operation_key,
        tool=newest.tool,
        outcome=operation.outcome,
        sentence=marked_text(sentence_of(newest, rules.get((newest.policy_id, newest.tool)))),
        run=operation.run.name if operation.run else "",
        step=operation.step,
        created_at=operation.created_at,
        chain=chain_views(case, newest, veil),
        lanes=lanes_of(operation, case.attempts, case.now),
        events=events,
        events_total=operation.event_count,
        older=events[-1].sequence if events and events[-1].sequence > 1 else None,
        rights=rights,
        as_of=case.now,
    )


def _veil_over_all(attempts: Iterable[tuple[Attempt, Rule | None]]) -> Veil:
    """What any attempt of it hides is hidden in all its history."""
    return one_veil(
        veil_of(stored_args(attempt), rule.mask) for attempt, rule in attempts if rule and rule.mask
    )
