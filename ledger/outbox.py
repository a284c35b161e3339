"""Write the deliveries of a settlement in the settling transaction. This code cannot reach a tool."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from celery import current_app
from django.db import transaction

from ledger.models import Attempt, Delivery, Destination, Operation, Settlement
from ledger.models.ids import delivery_id
from ledger.rules.pointers import glob_matches
from ledger.rules.states import Outcome
from ledger.rules.webhooks import Told, cloud_event
from ledger.transactions import remembered, require_transaction

logger = logging.getLogger(__name__)

HINT_LASTS_S = 4
QUIET_S = 30.0


@dataclass(frozen=True)
class Planned:
    """A delivery to be: its id is known before the settlement's event lists it."""

    delivery_id: str
    destination: Destination


def plan_deliveries(operation: Operation, *, tool: str, outcome: Outcome) -> tuple[Planned, ...]:
    """Who hears of this settlement: every subscribed destination, and each that heard an earlier one."""
    told = Delivery.objects.filter(operation=operation).values_list("destination_id", flat=True)
    heard = set(told.distinct()) if operation.settlements_count else set()
    return tuple(
        Planned(delivery_id(), destination)
        for destination in destinations_of(operation.tenant_id)
        if destination.pk in heard or _subscribes(destination, tool, outcome)
    )


@remembered
def destinations_of(tenant_id: int) -> list[Destination]:
    """Whom a tenant tells, in the order of their ids."""
    return list(Destination.objects.filter(tenant_id=tenant_id).order_by("id"))


def enqueue(settlement: Settlement, planned: tuple[Planned, ...], *, now: datetime) -> None:
    """Insert the planned deliveries with what they will say; to a paused destination they are held."""
    enqueue_all([(settlement, planned)], now=now)


def enqueue_all(settled: Iterable[tuple[Settlement, tuple[Planned, ...]]], *, now: datetime) -> None:
    """The same for several settlements at once."""
    require_transaction()
    deliveries = [_delivery(settlement, plan, now) for settlement, planned in settled for plan in planned]
    for delivery in deliveries:
        delivery.body = frozen_body(delivery)
    Delivery.objects.bulk_create(deliveries)
    if deliveries:
        transaction.on_commit(_hint, robust=True)


def frozen_body(delivery: Delivery) -> bytes:
    """What is sent at every try, byte for byte."""
    settlement = delivery.settlement
    return cloud_event(
        Told(
            webhook_id=delivery.webhook_id,
            tenant_slug=settlement.tenant.slug,
            operation_id=settlement.operation_id,
            operation_key=settlement.operation.operation_key,
            attempt_id=settlement.attempt_id,
            tool=settlement.attempt.tool,
            outcome=Outcome(settlement.outcome),
            number=settlement.number,
            result_ref=settlement.attempt.result_ref,
            settled_at=settlement.at,
            relinked_to=_relinked_to(settlement),
        )
    )


def _relinked_to(settlement: Settlement) -> str:
    """The operation that this one mirrors; the attempt that was relinked need not be the newest."""
    if settlement.outcome != Outcome.RELINKED:
        return ""
    relinked = Attempt.objects.filter(operation_id=settlement.operation_id, relinked_to__isnull=False)
    return relinked.order_by("-number").values_list("relinked_to_id", flat=True).first() or ""


class _Hints:
    """Tells workers that something is due, from a thread of its own: a broker that is slow, or does not
    answer, costs a settlement nothing. Losing a hint is harmless, a sweep finds everything."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._wanted = threading.Event()
        threading.Thread(target=self._tell, daemon=True, name="hints").start()

    def want(self) -> None:
        self._wanted.set()

    def _tell(self) -> None:
        while self._wanted.wait():
            self._wanted.clear()
            try:
                current_app.send_task("ledger.tasks.deliver", retry=False, expires=HINT_LASTS_S)
            except Exception as error:  # noqa: BLE001  (whatever a broker's library raises)
                logger.warning("The broker took no hint: %s", error)
                time.sleep(QUIET_S)


_hints: _Hints | None = None


def _hint() -> None:
    """Threads are never shared over a fork; one too many does no harm."""
    global _hints  # noqa: PLW0603
    if _hints is None or _hints.pid != os.getpid():
        _hints = _Hints()
    _hints.want()


def _delivery(settlement: Settlement, plan: Planned, now: datetime) -> Delivery:
    paused = plan.destination.paused_at is not None
    return Delivery(
        id=plan.delivery_id,
        tenant_id=settlement.tenant_id,
        operation_id=settlement.operation_id,
        settlement=settlement,
        destination=plan.destination,
        created_at=now,
        next_at=None if paused else now,
        held_at=now if paused else None,
    )


def _subscribes(destination: Destination, tool: str, outcome: Outcome) -> bool:
    wants_outcome = not destination.outcomes or outcome in destination.outcomes
    globs = destination.tool_globs
    return wants_outcome and (not globs or any(glob_matches(glob, tool) for glob in globs))
