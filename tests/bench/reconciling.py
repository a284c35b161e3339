"""One process that asks about what is due: `python -m tests.bench.reconciling ours|bare`.

`bare` is what a script would do: it knows its work beforehand, asks from 16 threads with a plain client, and
writes what ours writes, many rows to a statement, 32 look-ups to a transaction.
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
    """The product's own passes, until nobody has anything left to ask about."""
    from ledger.models import Attempt
    from ledger.reconciliation import reconcile_once
    from ledger.transactions import database_clock

    asked = 0
    while Attempt.objects.filter(next_check_at__lte=database_clock()).exists():
        asked += reconcile_once().looked_up
    return asked


@dataclass
class Due:
    """One attempt, the head of its operation's history, and what the bare client finds out."""

    attempt_id: str
    tenant_id: int
    operation_id: str
    operation_key: str
    sequence: int
    head: str
    item_id: str
    account_id: int
    record: Any = None


class BareAsker(Bare[Due]):
    """Asks one page each, and writes that it was found."""

    def __init__(self) -> None:
        from ledger.models import Destination, Provider

        super().__init__(_DUE, Due)
        self._provider, self._destination = Provider.objects.get(), Destination.objects.get()
        self._url = self._provider.config["request"]["url"].split("?")[0]

    def ask(self, due: Due) -> None:
        from ledger.rules.keys import correlation_id

        mark = correlation_id(str(due.tenant_id), due.operation_key)
        answer = self.client.get(f"{self._url}?correlation_id={mark}").raise_for_status()
        (due.record,) = answer.json()["data"]
        assert due.record["metadata"]["correlation_id"] == mark

    def write(self, cursor: psycopg.Cursor, batch: Sequence[Due], now: datetime) -> None:
        rows = [self._row(due, now) for due in batch]
        cursor.executemany(_LOOK_UP, rows)
        cursor.executemany(_EVENT, [event for row in rows for event in row["events"]])
        for statement in (_ATTEMPT, _ITEM, _ACCOUNT, _ENTRY, _OPERATION, _SETTLEMENT, _DELIVERY):
            cursor.executemany(statement, rows)

    def _row(self, due: Due, now: datetime) -> dict[str, Any]:
        """Everything that is written about one, by name."""
        from ledger.models.ids import delivery_id, webhook_id

        reference, delivery = due.record["id"], delivery_id()
        found = {"answer": "found", "references": [reference], "row": "confirmed"}
        confirmed = {
            "confirmed_by": "lookup", "from": "UNKNOWN", "reference": reference, "row": "confirmed",
            "to": "OUTCOME_CONFIRMED",
        }  # fmt: skip
        told = {"deliveries": [{"destination": self._destination.pk, "id": delivery}], "number": 1}
        settled = {**told, "outcome": "confirmed"}
        events = _chained(
            due,
            now,
            {"attempt.looked_up": found, "attempt.confirmed": confirmed, "operation.settled": settled},
        )
        return {
            "tenant": due.tenant_id, "attempt": due.attempt_id, "operation": due.operation_id, "now": now,
            "provider": self._provider.pk, "reference": reference, "item": due.item_id,
            "account": due.account_id, "events": events, "settled": events[-1]["id"],
            "head": events[-1]["hash"], "delivery": delivery, "webhook": webhook_id(),
            "destination": self._destination.pk, "body": json.dumps(settled).encode(),
            "records": json.dumps([{"reference": reference, "state": "done", "data": due.record}]),
        }  # fmt: skip


_DUE = """
    SELECT a.id, a.tenant_id, o.id, o.operation_key, o.event_count, o.head_hash, i.id, b.id
    FROM ledger_attempt a JOIN ledger_operation o ON o.id = a.operation_id
    JOIN ledger_reviewitem i ON i.attempt_id = a.id
    JOIN ledger_budgetaccount b ON b.run_id = o.run_id AND b.unit = 'tool_calls'
    WHERE a.next_check_at <= now() ORDER BY a.next_check_at
"""
_LOOK_UP = (
    "INSERT INTO ledger_lookup (tenant_id, attempt_id, provider_id, epoch, answered_at, answer, records, "
    "detail, row) VALUES (%(tenant)s, %(attempt)s, %(provider)s, 1, %(now)s, 'found', %(records)s, '', "
    "'confirmed')"
)
_EVENT = (
    "INSERT INTO ledger_event (id, tenant_id, operation_id, attempt_id, sequence, kind, actor_kind, actor, "
    "body, at, previous_hash, hash, written_in) VALUES (%(id)s, %(tenant_id)s, %(operation)s, %(attempt)s, "
    "%(sequence)s, %(kind)s, %(actor_kind)s, %(actor)s, %(body)s, %(now)s, %(previous)s, %(hash)s, "
    "pg_current_xact_id())"
)
_ATTEMPT = (
    "UPDATE ledger_attempt SET state = 'OUTCOME_CONFIRMED', reason = '', entered_state_at = %(now)s, "
    "confirmed_by = 'lookup', result_ref = %(reference)s, positive_evidence = true, next_check_at = NULL, "
    "lookup_epoch = 1 WHERE id = %(attempt)s"
)
_ITEM = (
    "UPDATE ledger_reviewitem SET closed_at = %(now)s, closed_how = 'OUTCOME_CONFIRMED' WHERE id = %(item)s"
)
_ACCOUNT = "UPDATE ledger_budgetaccount SET reserved = reserved - 1, spent = spent + 1 WHERE id = %(account)s"
_ENTRY = (
    "INSERT INTO ledger_budgetentry (tenant_id, account_id, attempt_id, kind, reserved_change, spent_change, "
    "usage_id, at) VALUES (%(tenant)s, %(account)s, %(attempt)s, 'POST', -1, 1, '', %(now)s)"
)
_OPERATION = (
    "UPDATE ledger_operation SET outcome = 'confirmed', settlements_count = 1, "
    "event_count = event_count + 3, head_hash = %(head)s WHERE id = %(operation)s"
)
_SETTLEMENT = (
    "INSERT INTO ledger_settlement (tenant_id, operation_id, number, outcome, attempt_id, event_id, at) "
    "VALUES (%(tenant)s, %(operation)s, 1, 'confirmed', %(attempt)s, %(settled)s, %(now)s)"
)
_DELIVERY = (
    "INSERT INTO ledger_delivery (id, tenant_id, operation_id, settlement_id, destination_id, webhook_id, "
    "body, state, tries, tries_before, created_at, next_at, lease_epoch, last_end, dead_reason) "
    "SELECT %(delivery)s, tenant_id, operation_id, id, %(destination)s, %(webhook)s, %(body)s, 'PENDING', "
    "0, 0, at, at, 0, '', '' FROM ledger_settlement WHERE operation_id = %(operation)s"
)


def _chained(due: Due, now: datetime, said: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    from ledger.models.ids import event_id
    from ledger.rules.chain import event_hash

    events, head = [], due.head
    for number, (kind, body) in enumerate(said.items(), due.sequence + 1):
        hashed: dict[str, Any] = {
            "id": event_id(), "tenant": str(due.tenant_id), "operation": due.operation_id,
            "attempt": due.attempt_id, "sequence": number, "kind": kind, "actor_kind": "reconciler",
            "actor": "reconciler", "at": now.isoformat(timespec="microseconds"),
            "body": json.dumps(body, separators=(",", ":"), sort_keys=True),
        }  # fmt: skip
        before, head = head, event_hash(head, hashed)
        events.append({**hashed, "tenant_id": due.tenant_id, "now": now, "previous": before, "hash": head})
    return events


def _warm_up() -> None:
    from celery import current_app

    from ledger.reconciliation import reconcile_once

    reconcile_once()
    current_app.send_task("ledger.tasks.deliver")


if __name__ == "__main__":
    compete(*sys.argv[1:], bare=BareAsker, ours=ours, warm_up=_warm_up)
