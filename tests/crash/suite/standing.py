"""Where a tenant stands: what is due and when, what is open, and whether anything has moved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from ledger.models import Approval, Attempt, Delivery, Destination, Operation, ReviewItem
from ledger.policies import rule_in_force, rule_of_next_send
from ledger.rules.states import FINAL, OPEN_QUESTION, WAITS_FOR_AGENT, DeliveryState, State
from ledger.transactions import database_clock


@dataclass(frozen=True)
class Due:
    """Something that will be done: sweep, reconcile, send (by the ledger), deliver or agent; in so many
    seconds. `operation`: its key; of a delivery, its id."""

    task: str
    operation: str
    in_s: float


def standing_of(tenant_id: int, *, delivers: bool) -> dict[str, Any]:
    """As data for the lane; `delivers`: this tenant has consumers."""
    now = database_clock()
    attempts = list(
        Attempt.objects.filter(tenant_id=tenant_id).exclude(state__in=sorted(FINAL - {State.SUPERSEDED}))
        .exclude(state=State.SUPERSEDED).select_related("operation", "policy")
    )  # fmt: skip
    approvals = list(Approval.objects.filter(tenant_id=tenant_id, used_at=None, voided_at=None))
    approved = {approval.attempt_id for approval in approvals if approval.expires_at > now}
    due = [thing for attempt in attempts for thing in _due(attempt, attempt.pk in approved, now)]
    due += [Due("sweep", "", _in_s(approval.expires_at, now)) for approval in approvals]
    due += _deliveries_due(tenant_id, now) if delivers else []
    operations = Operation.objects.filter(tenant_id=tenant_id)
    return {
        "due": [vars(thing) for thing in due],
        "items": _items(tenant_id),
        "letters": _letters(tenant_id) if delivers else [],
        "moved": sorted(operations.values_list("operation_key", "event_count", "outcome")),
        "live": [f"{a.operation.operation_key} #{a.number} {a.state} {a.reason}" for a in attempts],
    }


def _due(attempt: Attempt, approved: bool, now: datetime) -> list[Due]:
    key = attempt.operation.operation_key
    if attempt.state == State.DISPATCHED and attempt.lease_until is not None:
        return [Due("sweep", key, _in_s(attempt.lease_until, now))]
    due = []
    if attempt.next_check_at is not None and attempt.state in OPEN_QUESTION:
        free_at = max(attempt.next_check_at, attempt.lookup_lease_until or attempt.next_check_at)
        due.append(Due("reconcile", key, _in_s(free_at, now)))
    if attempt.state in WAITS_FOR_AGENT or approved:
        in_force = rule_in_force(attempt.tenant_id, attempt.tool)
        task = "send" if rule_of_next_send(attempt, in_force).executor == "ledger" else "agent"
        due.append(Due(task, key, _in_s(attempt.send_again_at, now)))
    return due


def _deliveries_due(tenant_id: int, now: datetime) -> list[Due]:
    """To a destination that is not paused; what is held is released once it is resumed."""
    waiting = Delivery.objects.filter(
        Q(next_at__isnull=False) | Q(held_at__isnull=False), tenant_id=tenant_id, destination__paused_at=None
    )
    return [
        Due("deliver", delivery.pk, max(_in_s(at, now) for at in _not_before(delivery)))
        for delivery in waiting.select_related("destination")
    ]


def _not_before(delivery: Delivery) -> tuple[datetime | None, ...]:
    return delivery.next_at, delivery.lease_until, delivery.destination.rests_until


def _letters(tenant_id: int) -> list[dict[str, str]]:
    """What a person does about deliveries: resume what is paused, redeliver what died and has an owner."""
    paused = Destination.objects.filter(tenant_id=tenant_id).exclude(paused_at=None)
    dead = Delivery.objects.filter(
        tenant_id=tenant_id,
        state=DeliveryState.DEAD_LETTERED,
        owner_group__isnull=False,
        next_at=None,
        held_at=None,
    )
    return [
        *({"kind": "resume", "subject": pk} for pk in paused.values_list("pk", flat=True)),
        *({"kind": "redeliver", "subject": pk} for pk in dead.values_list("pk", flat=True)),
    ]


def _in_s(at: datetime | None, now: datetime) -> float:
    return 0.0 if at is None else (at - now).total_seconds()


def _items(tenant_id: int) -> list[dict[str, Any]]:
    found = ReviewItem.objects.filter(Q(closed_at=None), tenant_id=tenant_id).select_related(
        "operation", "attempt"
    )
    return [
        {
            "id": item.pk,
            "operation": item.operation.operation_key,
            "reason": item.reason,
            "state": item.attempt.state,
            "events": item.operation.event_count,
        }
        for item in found
    ]
