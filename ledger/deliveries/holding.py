"""What time and pauses do to waiting deliveries, in small steps that wait for nobody."""

from __future__ import annotations

import logging
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

_HOLD = """
    UPDATE ledger_delivery SET held_at = clock_timestamp(), next_at = NULL WHERE id IN (
        SELECT waiting.id FROM ledger_delivery waiting
        JOIN ledger_destination destination ON destination.id = waiting.destination_id
        WHERE destination.paused_at IS NOT NULL AND waiting.next_at IS NOT NULL
          AND (waiting.lease_until IS NULL OR waiting.lease_until <= clock_timestamp())
        LIMIT %s FOR NO KEY UPDATE OF waiting SKIP LOCKED
    )
"""
_RELEASE = """
    UPDATE ledger_delivery SET held_at = NULL, next_at = clock_timestamp() WHERE id IN (
        SELECT held.id FROM ledger_delivery held
        JOIN ledger_destination destination ON destination.id = held.destination_id
        WHERE destination.paused_at IS NULL AND held.held_at IS NOT NULL
        ORDER BY held.id LIMIT %s FOR NO KEY UPDATE OF held SKIP LOCKED
    )
"""


def follow_pauses() -> int:
    """Hold what waits for a paused destination, release what waits for one that is not any more. Returns how
    many deliveries changed; worth another call while it is a full step."""
    return durable(lambda: _change(_HOLD)) + durable(lambda: _change(_RELEASE))


def _change(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, [STEP])
        return int(cursor.rowcount)


def end_unacknowledged(*, at_most: int = STEP) -> int:
    """Dead-letter what was received, used up its tries, and was never acknowledged in time."""
    overdue = _overdue(database_clock()).values_list("pk", "operation_id")
    return sum(_ended(*ids) for ids in list(overdue[:at_most]))


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
    delivery = locked_delivery(delivery_id, operation_id)
    now = database_clock()
    if not _overdue(now).filter(pk=delivery_id).exists():
        return False
    dead_letter(delivery, DeadReason.NOT_ACKNOWLEDGED, actor=SENDER, now=now)
    return True


def locked_delivery(delivery_id: str, operation_id: str) -> Delivery:
    """A delivery under lock, its operation locked before it, as every verb of this package needs it."""
    operation = Operation.objects.select_for_update(no_key=True).get(pk=operation_id)
    rows = Delivery.objects.select_for_update(no_key=True, of=("self",))
    delivery = rows.select_related("destination", "settlement").get(pk=delivery_id)
    delivery.operation = operation
    return delivery
