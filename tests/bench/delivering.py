"""One process that delivers what is due: `python -m tests.bench.delivering ours|bare`.

It says "ready", waits for a line, works until nothing is due, and says how many, for how long, with how much
CPU, in JSON. `bare` is what a script would do: it knows its work beforehand, posts it from 16 threads with a
plain client, and writes what ours writes, many rows to a statement, in transactions as large as ours.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from tests.bench.bare import Bare, compete


def ours() -> int:
    """The product's own passes, until nobody has anything left to send."""
    from ledger.deliveries import deliver_once, stop_sending
    from ledger.models import Delivery
    from ledger.transactions import database_clock

    tried = 0
    while Delivery.objects.filter(next_at__lte=database_clock()).exists():
        tried += deliver_once(drain=False).tried
    stop_sending()
    return tried


@dataclass
class Due:
    """One delivery and the head of its operation's history."""

    delivery_id: str
    tenant_id: int
    operation_id: str
    destination_id: str
    webhook_id: str
    body: bytes
    url: str
    sequence: int
    head: str


class BareSender(Bare[Due]):
    """Posts bodies that lie ready, and writes that they came."""

    def __init__(self) -> None:
        super().__init__(_DUE, Due)

    def ask(self, due: Due) -> None:
        headers = {"webhook-id": due.webhook_id, "Content-Type": "application/cloudevents+json"}
        self.client.post(due.url, headers=headers, content=bytes(due.body)).raise_for_status()

    def write(self, cursor: psycopg.Cursor, batch: Sequence[Due], now: datetime) -> None:
        from ledger.models.ids import event_id

        events = [_event(due, event_id(), now) for due in batch]
        cursor.executemany(_TRY, [(due.tenant_id, due.delivery_id, now, now, due.url) for due in batch])
        cursor.executemany(_ACK, [(due.tenant_id, due.delivery_id, now) for due in batch])
        cursor.executemany(_EVENT, events)
        cursor.executemany(_HEAD, [(row["sequence"], row["hash"], row["operation"]) for row in events])
        cursor.executemany(_DELIVERY, [(now, due.delivery_id) for due in batch])


_DUE = (
    "SELECT d.id, d.tenant_id, d.operation_id, d.destination_id, d.webhook_id, d.body, t.url, "
    "o.event_count + 1, o.head_hash FROM ledger_delivery d "
    "JOIN ledger_destination t ON t.id = d.destination_id "
    "JOIN ledger_operation o ON o.id = d.operation_id WHERE d.next_at <= now() ORDER BY d.next_at"
)
_TRY = (
    "INSERT INTO ledger_deliverytry (tenant_id, delivery_id, number, lease_epoch, replay, at, ended_at, "
    "ended_as, url, status, sent_headers, answer_headers, answer_head, answer_cut, detail, took_ms) VALUES "
    """(%s, %s, 1, 1, false, %s, %s, 'received', %s, 200, '{"a": "b"}', '{"a": "b"}', '{}', false, '', 20)"""
)
_ACK = "INSERT INTO ledger_deliveryack (tenant_id, delivery_id, at, duplicate) VALUES (%s, %s, %s, false)"
_EVENT = (
    "INSERT INTO ledger_event (id, tenant_id, operation_id, sequence, kind, actor_kind, actor, body, at, "
    "previous_hash, hash, written_in) VALUES (%(id)s, %(tenant)s, %(operation)s, %(sequence)s, %(kind)s, "
    "%(actor_kind)s, %(actor)s, %(body)s, %(now)s, %(previous)s, %(hash)s, pg_current_xact_id())"
)
_HEAD = "UPDATE ledger_operation SET event_count = %s, head_hash = %s WHERE id = %s"
_DELIVERY = (
    "UPDATE ledger_delivery SET state = 'ACKED', acked_at = %s, next_at = NULL, tries = 1, lease_epoch = 1, "
    "last_end = 'received' WHERE id = %s"
)


def _event(due: Due, event_id: str, now: datetime) -> dict[str, Any]:
    from ledger.rules.chain import event_hash

    body = {"delivery": due.delivery_id, "destination": due.destination_id, "settlement": 1, "tries": 1}
    hashed: dict[str, Any] = {
        "id": event_id,
        "tenant": str(due.tenant_id),
        "operation": due.operation_id,
        "attempt": None,
        "sequence": due.sequence,
        "kind": "delivery.acked",
        "actor_kind": "sender",
        "actor": "sender",
        "at": now.isoformat(timespec="microseconds"),
        "body": json.dumps(body, separators=(",", ":")),
    }
    return {
        **hashed,
        "tenant": due.tenant_id,
        "now": now,
        "previous": due.head,
        "hash": event_hash(due.head, hashed),
    }


def _warm_up() -> None:
    from ledger.deliveries import deliver_once

    deliver_once()


if __name__ == "__main__":
    compete(*sys.argv[1:], bare=BareSender, ours=ours, warm_up=_warm_up)
