"""Claim due deliveries: a short transaction, a lease with an epoch, the try written down, the work outside.

Destinations are asked in turn, each for as many as it has places, so that none delays another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Exists, F, OuterRef, Q

from ledger.models import Delivery, DeliveryTry, Destination
from ledger.outbox import frozen_body
from ledger.rules.deliveries import MOST_TRIES, places
from ledger.transactions import database_clock, durable, monotonic_s

LEASE = timedelta(seconds=8)
"""Renewed while a try goes on: where a sender dies, its destination's places are free again this soon."""
RENEWED_EVERY_S = 2.0

ASKED_AT_ONCE = 100
"""Destinations looked at by one claim; the next one draws others."""


@dataclass(frozen=True)
class Claim:
    """One try to be made. Its end counts only under this epoch; after `start_by_s` it is begun only where it
    still holds its lease."""

    delivery_id: str
    try_id: int
    epoch: int
    operation_id: str
    destination_id: str
    url: str
    webhook_id: str
    body: bytes
    replay: bool
    at: datetime
    start_by_s: float


def claim_due(*, at_most: int) -> list[Claim]:
    """Take the delivery lease of due deliveries that nobody holds, each destination's soonest first."""
    started_s = monotonic_s()
    return durable(lambda: _claim(at_most, started_s + LEASE.total_seconds() / 2))


def renew(claims: Iterable[Claim]) -> int:
    """These tries go on; how many of them still hold their lease. One that somebody else took meanwhile, or
    is just recorded, is left alone."""
    held = [(claim.delivery_id, claim.epoch) for claim in claims]
    return durable(lambda: _renew(held)) if held else 0


_RENEW = """
    UPDATE ledger_delivery SET lease_until = %(until)s WHERE id IN (
        SELECT delivery.id FROM ledger_delivery delivery
        JOIN unnest(%(ids)s::text[], %(epochs)s::int[]) AS held (id, epoch)
          ON held.id = delivery.id AND held.epoch = delivery.lease_epoch
        WHERE delivery.lease_until IS NOT NULL
        ORDER BY delivery.id FOR NO KEY UPDATE OF delivery SKIP LOCKED
    )
"""


def _renew(held: list[tuple[str, int]]) -> int:
    ids, epochs = map(list, zip(*held, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, {"until": database_clock() + LEASE, "ids": ids, "epochs": epochs})
        return int(cursor.rowcount)


def _claim(at_most: int, start_by_s: float) -> list[Claim]:
    """Every try is written down before it is made."""
    now = database_clock()
    picked = Delivery.objects.filter(pk__in=_pick(_places(now), now=now, at_most=at_most))
    picked.update(lease_until=now + LEASE, lease_epoch=F("lease_epoch") + 1, tries=F("tries") + 1)
    taken = picked.select_related("destination").order_by("next_at")
    begun = DeliveryTry.objects.bulk_create([_try(delivery, now) for delivery in taken])
    return [_claim_of(one, start_by_s) for one in begun]


def _places(now: datetime) -> dict[str, int]:
    """How many more each destination may be sent; its row is held, so that two claims never add up."""
    due = Delivery.objects.filter(
        Q(lease_until=None) | Q(lease_until__lte=now),
        destination_id=OuterRef("pk"),
        next_at__lte=now,
        tries__lt=F("tries_before") + MOST_TRIES,
    )
    destinations = (
        Destination.objects.filter(Q(rests_until=None) | Q(rests_until__lte=now), Exists(due), paused_at=None)
        .order_by("?")
        .select_for_update(skip_locked=True, no_key=True)[:ASKED_AT_ONCE]
    )
    under_way = _under_way([destination.pk for destination in destinations], now)
    return {
        destination.pk: places(
            failures=destination.failures,
            most_at_once=destination.most_at_once,
            under_way=under_way.count(destination.pk),
        )
        for destination in destinations
    }


def _under_way(destination_ids: list[str], now: datetime) -> list[str]:
    leased = Delivery.objects.filter(destination_id__in=destination_ids, lease_until__gt=now)
    return list(leased.values_list("destination_id", flat=True))


_PICK = """
    SELECT due.id FROM unnest(%(destinations)s::text[], %(places)s::int[]) AS free (destination_id, places)
    CROSS JOIN LATERAL (
        SELECT id, next_at FROM ledger_delivery
        WHERE destination_id = free.destination_id AND next_at <= %(now)s
          AND (lease_until IS NULL OR lease_until <= %(now)s)
          AND tries - tries_before < %(most_tries)s
        ORDER BY next_at LIMIT free.places FOR NO KEY UPDATE SKIP LOCKED
    ) due
    ORDER BY due.next_at LIMIT %(at_most)s
"""


def _pick(free: dict[str, int], *, now: datetime, at_most: int) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            _PICK,
            {
                "destinations": list(free),
                "places": list(free.values()),
                "now": now,
                "most_tries": MOST_TRIES,
                "at_most": at_most,
            },
        )
        return [delivery_id for (delivery_id,) in cursor.fetchall()]


def _try(delivery: Delivery, now: datetime) -> DeliveryTry:
    return DeliveryTry(
        tenant_id=delivery.tenant_id,
        delivery=delivery,
        number=delivery.tries,
        lease_epoch=delivery.lease_epoch,
        replay=delivery.acked_at is not None or delivery.dead_at is not None,
        at=now,
        url=delivery.destination.url,
    )


def _claim_of(begun: DeliveryTry, start_by_s: float) -> Claim:
    delivery = begun.delivery
    return Claim(
        delivery_id=delivery.pk,
        try_id=begun.pk,
        epoch=begun.lease_epoch,
        operation_id=delivery.operation_id,
        destination_id=delivery.destination_id,
        url=begun.url,
        webhook_id=delivery.webhook_id,
        body=_body(delivery),
        replay=begun.replay,
        at=begun.at,
        start_by_s=start_by_s,
    )


def _body(delivery: Delivery) -> bytes:
    """Frozen when it was settled, or now where that was before bodies were kept."""
    if delivery.body is None:
        delivery.body = frozen_body(delivery)
        delivery.save(update_fields=["body"])
    return bytes(delivery.body)
