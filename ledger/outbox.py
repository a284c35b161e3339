"""Write the deliveries of a settlement in the settling transaction. This code cannot reach a tool."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ledger.models import Delivery, Destination, Operation, Settlement
from ledger.models.ids import delivery_id
from ledger.rules.pointers import glob_matches
from ledger.rules.states import Outcome
from ledger.transactions import require_transaction


@dataclass(frozen=True)
class Planned:
    """A delivery to be: its id is known before the settlement's event lists it."""

    delivery_id: str
    destination: Destination


def plan_deliveries(operation: Operation, *, tool: str, outcome: Outcome) -> tuple[Planned, ...]:
    """Who hears of this settlement: every subscribed destination, and each that heard an earlier one."""
    heard = set(
        Delivery.objects.filter(operation=operation).values_list("destination_id", flat=True).distinct()
    )
    destinations = Destination.objects.filter(tenant_id=operation.tenant_id).order_by("id")
    return tuple(
        Planned(delivery_id(), destination)
        for destination in destinations
        if destination.pk in heard or _subscribes(destination, tool, outcome)
    )


def enqueue(settlement: Settlement, planned: tuple[Planned, ...], *, now: datetime) -> None:
    """Insert the planned deliveries; to a paused destination they are held."""
    require_transaction()
    Delivery.objects.bulk_create(
        Delivery(
            id=plan.delivery_id,
            tenant_id=settlement.tenant_id,
            operation_id=settlement.operation_id,
            settlement=settlement,
            destination=plan.destination,
            created_at=now,
            next_at=None if plan.destination.paused_at else now,
            held_at=now if plan.destination.paused_at else None,
        )
        for plan in planned
    )


def _subscribes(destination: Destination, tool: str, outcome: Outcome) -> bool:
    wants_outcome = not destination.outcomes or outcome in destination.outcomes
    globs = destination.tool_globs
    return wants_outcome and (not globs or any(glob_matches(glob, tool) for glob in globs))
