"""Claim due deliveries: a short transaction, a lease with an epoch, the try written down, the work outside.

Destinations are asked in turn, each for as many as it has places, so that none delays another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from ledger.models import Delivery
from ledger.outbox import frozen_body
from ledger.rules.deliveries import FAILURES_BEFORE_REST, MOST_TRIES
from ledger.transactions import Busy, database_clock, durable, monotonic_s

LEASE = timedelta(seconds=8)
"""Renewed while a try goes on: where a sender dies, its destination's places are free again this soon."""
RENEWED_EVERY_S = 2.0

DESTINATIONS_AT_ONCE = 16
"""Whose rows one claim holds; the others are free for whoever claims meanwhile. The next one draws anew."""


@dataclass(frozen=True)
class Claim:
    """One try to be made, signed with what was live at its time. Its end counts only under this epoch; after
    `start_by_s` it is begun only where it still holds its lease."""

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
    sealed: tuple[bytes, ...] = field(repr=False)
    start_by_s: float


def claim_due(*, at_most: int) -> list[Claim]:
    """Take the delivery lease of due deliveries that nobody holds, each destination's soonest first."""
    started_s = monotonic_s()
    try:
        return durable(lambda: _claim(at_most, started_s + LEASE.total_seconds() / 2))
    except Busy:
        return []


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
    """Two statements: how many are under way must be counted after the destinations' rows are held."""
    free = _lock_destinations(at_most, "SKIP LOCKED") or _lock_destinations(at_most, "NOWAIT")
    begun = _begin_tries(free, at_most) if free else []
    return [_claim_of(one, start_by_s) for one in begun]


_LOCK_DESTINATIONS = """
    SELECT destination.id, limits.most FROM ledger_destination destination
    CROSS JOIN LATERAL (
        SELECT CASE WHEN failures >= %(failures_before_rest)s THEN 1 ELSE most_at_once END AS most
    ) limits
    WHERE paused_at IS NULL AND (rests_until IS NULL OR rests_until <= statement_timestamp())
      AND EXISTS (
        SELECT FROM ledger_delivery due
        WHERE due.destination_id = destination.id AND due.next_at <= statement_timestamp()
          AND (due.lease_until IS NULL OR due.lease_until <= statement_timestamp())
          AND due.tries - due.tries_before < %(most_tries)s
    ) AND limits.most > (
        SELECT count(*) FROM ledger_delivery leased
        WHERE leased.destination_id = destination.id AND leased.lease_until > statement_timestamp()
    )
    ORDER BY random() LIMIT %(at_most)s FOR NO KEY UPDATE OF destination
"""


def _lock_destinations(at_most: int, held_by_others: str) -> list[tuple[str, int]]:
    """Some that have a place and something due, and how many each may be sent at once: one while it is only
    being probed. Their rows are held, so that two claims never add up. Where others hold all there are,
    NOWAIT has the whole claim made again: they will be free in a moment."""
    limits = {"failures_before_rest": FAILURES_BEFORE_REST, "most_tries": MOST_TRIES}
    limits["at_most"] = min(at_most, DESTINATIONS_AT_ONCE)
    with connection.cursor() as cursor:
        cursor.execute(f"{_LOCK_DESTINATIONS} {held_by_others}", limits)
        return [(destination_id, most) for destination_id, most in cursor.fetchall()]


_BEGIN_TRIES = """
    WITH due AS (
        SELECT due.id FROM unnest(%(destinations)s::text[], %(most)s::int[]) AS free (destination_id, most)
        CROSS JOIN LATERAL (
            SELECT id, next_at FROM ledger_delivery
            WHERE destination_id = free.destination_id AND next_at <= statement_timestamp()
              AND (lease_until IS NULL OR lease_until <= statement_timestamp())
              AND tries - tries_before < %(most_tries)s
            ORDER BY next_at
            LIMIT greatest(0, free.most - (
                SELECT count(*) FROM ledger_delivery leased
                WHERE leased.destination_id = free.destination_id
                  AND leased.lease_until > statement_timestamp()
            ))
            FOR NO KEY UPDATE SKIP LOCKED
        ) due
        ORDER BY due.next_at LIMIT %(at_most)s
    ), taken AS (
        UPDATE ledger_delivery delivery SET lease_until = statement_timestamp() + %(lease)s,
            lease_epoch = lease_epoch + 1, tries = tries + 1
        FROM due WHERE delivery.id = due.id
        RETURNING delivery.*, statement_timestamp() AS at
    ), begun AS (
        INSERT INTO ledger_deliverytry (tenant_id, delivery_id, number, lease_epoch, replay, at, url)
        SELECT taken.tenant_id, taken.id, tries, lease_epoch, acked_at IS NOT NULL OR dead_at IS NOT NULL,
               at, url
        FROM taken JOIN ledger_destination destination ON destination.id = taken.destination_id
        RETURNING id, delivery_id, replay, url
    )
    SELECT delivery_id, begun.id AS try_id, lease_epoch AS epoch, operation_id, destination_id, url,
           webhook_id, body, replay, at, ARRAY(
               SELECT sealed FROM ledger_destinationsecret secret
               WHERE secret.destination_id = taken.destination_id
                 AND (retires_at IS NULL OR retires_at > at)
               ORDER BY retires_at DESC NULLS FIRST, secret.id DESC
           ) AS sealed
    FROM taken JOIN begun ON delivery_id = taken.id ORDER BY next_at
"""


def _begin_tries(free: Sequence[tuple[str, int]], at_most: int) -> list[dict[str, Any]]:
    """Lease what is due, write each try down before it is made, and return what is to be sent."""
    destinations, most = map(list, zip(*free, strict=True))
    limits: dict[str, Any] = {"at_most": at_most, "most_tries": MOST_TRIES, "lease": LEASE}
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN_TRIES, {"destinations": destinations, "most": most, **limits})
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _claim_of(begun: dict[str, Any], start_by_s: float) -> Claim:
    body = begun["body"] if begun["body"] is not None else _freeze_body(begun["delivery_id"])
    begun |= {"body": bytes(body), "sealed": tuple(map(bytes, begun["sealed"]))}
    return Claim(**begun, start_by_s=start_by_s)


def _freeze_body(delivery_id: str) -> bytes:
    """Of one that was settled before bodies were kept."""
    delivery = Delivery.objects.get(pk=delivery_id)
    delivery.body = frozen_body(delivery)
    delivery.save(update_fields=["body"])
    return delivery.body
