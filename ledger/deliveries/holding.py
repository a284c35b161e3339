"""What time and pauses do to waiting deliveries, in small steps that wait for nobody."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime

from django.db import connection
from django.db.models import F, Q, QuerySet

from ledger.deliveries.moves import dead_letter
from ledger.events import SENDER
from ledger.models import Delivery, Operation
from ledger.rules.deliveries import MOST_TRIES, DeadReason
from ledger.rules.states import DeliveryState
from ledger.transactions import Busy, database_clock, durable

logger = logging.getLogger(__name__)

STEP = 500
MOST_ENDED = 500

_HOLD = """
    UPDATE ledger_delivery SET held_at = clock_timestamp(), next_at = NULL WHERE id IN (
        SELECT waiting.id FROM ledger_delivery waiting
        JOIN ledger_destination destination ON destination.id = waiting.destination_id
        WHERE destination.paused_at IS NOT NULL AND waiting.next_at IS NOT NULL
          AND (waiting.lease_until IS NULL OR waiting.lease_until <= clock_timestamp())
        LIMIT %(step)s FOR NO KEY UPDATE OF waiting SKIP LOCKED
    )
"""
_RELEASE = """
    UPDATE ledger_delivery SET held_at = NULL, next_at = clock_timestamp() WHERE id IN (
        SELECT held.id FROM (
            SELECT id FROM ledger_destination WHERE paused_at IS NULL ORDER BY random()
        ) going_on CROSS JOIN LATERAL (
            SELECT id FROM ledger_delivery WHERE destination_id = going_on.id AND held_at IS NOT NULL
            ORDER BY id LIMIT %(step)s FOR NO KEY UPDATE SKIP LOCKED
        ) held LIMIT %(step)s
    )
"""
"""Which destination's are next is drawn anew for each step, so that one with many keeps no other waiting."""


def follow_pauses() -> Iterator[int]:
    """Hold what waits for a paused destination, release what waits for one that is not any more: how many
    deliveries changed, step by step."""
    while changed := durable(lambda: _change(_HOLD)) + durable(lambda: _change(_RELEASE)):
        yield changed


def _change(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"step": STEP})
        return int(cursor.rowcount)


def end_unacknowledged() -> Iterator[int]:
    """Dead-letter what was received, used up its tries, and was never acknowledged in time: one a step, or
    none where its operation is busy."""
    overdue = _overdue(database_clock()).values_list("pk", "operation_id")
    for ids in list(overdue[:MOST_ENDED]):
        yield int(_ended(*ids))


def _overdue(now: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(
        Q(lease_until=None) | Q(lease_until__lte=now),
        next_at__lte=now,
        tries__gte=F("tries_before") + MOST_TRIES,
        state__in=[DeliveryState.PENDING, DeliveryState.SENT],
    )


def _ended(delivery_id: str, operation_id: str) -> bool:
    """One whose operation somebody else holds waits for the next look, and makes no other wait."""
    try:
        return durable(lambda: _end(delivery_id, operation_id))
    except Busy:
        logger.warning("Delivery %s is overdue, and its operation is busy", delivery_id)
        return False


def _end(delivery_id: str, operation_id: str) -> bool:
    delivery = locked_delivery(delivery_id, operation_id, waits=False)
    now = database_clock()
    if not _overdue(now).filter(pk=delivery_id).exists():
        return False
    dead_letter(delivery, DeadReason.NOT_ACKNOWLEDGED, actor=SENDER, now=now)
    return True


def locked_delivery(delivery_id: str, operation_id: str, *, waits: bool = True) -> Delivery:
    """A delivery under lock, its operation locked before it, as every verb of this package needs it.
    `Busy` at once where it does not wait and somebody else holds the operation."""
    operations = Operation.objects.select_for_update(no_key=True, skip_locked=not waits)
    operation = operations.filter(pk=operation_id).first()
    if operation is None:
        raise Busy(f"operation {operation_id} is locked by others")
    rows = Delivery.objects.select_for_update(no_key=True, of=("self",))
    delivery = rows.select_related("destination", "settlement").get(pk=delivery_id)
    delivery.operation = operation
    return delivery
