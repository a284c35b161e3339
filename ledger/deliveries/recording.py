"""Write down how tries ended, and what follows: the only place where a delivery changes state by a try.

Locks in the order of the whole house: operations by id, deliveries by id, destination, events.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import connection
from django.db.models import QuerySet

from ledger.deliveries import health
from ledger.deliveries.claiming import Claim
from ledger.deliveries.moves import acknowledge, acknowledge_received, dead_letter, mark_sent
from ledger.deliveries.posting import Posted
from ledger.events import SENDER
from ledger.faults import fault_point
from ledger.models import Delivery, Destination, Operation, Settlement
from ledger.models.base import TenantRow
from ledger.rules.deliveries import (
    Follows,
    TryEnd,
    TryFacts,
    after_try,
    is_acknowledgement,
    retry_after_s,
)
from ledger.rules.states import DeliveryState
from ledger.transactions import database_clock, require_transaction

_Row = TypeVar("_Row", bound=TenantRow)

KEPT_BYTES = 4_096
KEPT_HEADERS = 40
KEPT_HEADER_CHARACTERS = 500


@dataclass(frozen=True)
class Ended:
    """How one claimed try ended."""

    claim: Claim
    posted: Posted


def record_ends(ends: Iterable[Ended]) -> dict[str, DeliveryState]:
    """Record tries, each for itself and once, in one transaction: whoever lost the answer to a commit asks
    again. Returns the state of each delivery afterwards."""
    require_transaction()
    by_age = sorted(ends, key=lambda ended: (ended.claim.delivery_id, ended.claim.epoch))
    deliveries = _locked(by_age)
    now = database_clock()
    new = _write_ends(by_age, now)
    by_age = [ended for ended in by_age if ended.claim.try_id in new]
    received = _plainly_received(by_age, deliveries)
    acknowledge_received(received, actor=SENDER, now=now)
    told = {delivery.pk for delivery in received}
    for ended in by_age:
        if ended.claim.delivery_id not in told:
            _record(deliveries[ended.claim.delivery_id], ended, now)
    _note_health(by_age, deliveries, now)
    fault_point("delivery.before_commit")
    return {delivery.pk: DeliveryState(delivery.state) for delivery in deliveries.values()}


def _locked(ends: Sequence[Ended]) -> dict[str, Delivery]:
    """The deliveries by their ids. Those of one operation, or one destination, share it as an object."""
    operations = _by_id(Operation, _LOCK_OPERATIONS, {ended.claim.operation_id for ended in ends})
    deliveries = _by_id(Delivery, _LOCK_DELIVERIES, {ended.claim.delivery_id for ended in ends})
    settlements = _by_id(Settlement, _SETTLEMENTS, {one.settlement_id for one in deliveries.values()})
    destinations = _by_id(Destination, _DESTINATIONS, {ended.claim.destination_id for ended in ends})
    for delivery in deliveries.values():
        delivery.operation = operations[delivery.operation_id]
        delivery.settlement = settlements[delivery.settlement_id]
        delivery.destination = destinations[delivery.destination_id]
    return deliveries


_LOCK_OPERATIONS = """
    SELECT id, tenant_id, event_count, head_hash FROM ledger_operation
    WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE
"""
_LOCK_DELIVERIES = """
    SELECT id, tenant_id, operation_id, settlement_id, destination_id, state, tries, tries_before, lease_epoch
    FROM ledger_delivery WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE
"""
_SETTLEMENTS = "SELECT id, number FROM ledger_settlement WHERE id = ANY(%s)"
_DESTINATIONS = "SELECT * FROM ledger_destination WHERE id = ANY(%s)"


def _by_id(model: type[_Row], sql: str, ids: set[Any]) -> dict[Any, _Row]:
    """In SQL, for putting these together in Python was a quarter of all that a delivery costs."""
    rows: Iterable[_Row] = QuerySet(model).raw(sql, [list(ids)])
    return {row.pk: row for row in rows}


def _plainly_received(ends: Sequence[Ended], deliveries: Mapping[str, Delivery]) -> list[Delivery]:
    """Those of which the only end here is the usual one: a 2xx to whoever holds the lease, and nothing that
    happened meanwhile. They are most, and are moved together."""
    counts = Counter(ended.claim.delivery_id for ended in ends)
    return [
        delivery
        for ended in ends
        if counts[ended.claim.delivery_id] == 1
        and _is_plainly_received(delivery := deliveries[ended.claim.delivery_id], ended)
    ]


def _is_plainly_received(delivery: Delivery, ended: Ended) -> bool:
    return (
        ended.posted.end is TryEnd.RECEIVED
        and delivery.destination.ack == "response"
        and _holds_the_lease(delivery, ended)
        and delivery.state in {DeliveryState.PENDING, DeliveryState.SENT}
        and delivery.tries > delivery.tries_before
    )


def _record(delivery: Delivery, ended: Ended, now: datetime) -> None:
    """A sender that lost its lease only adds what it saw; but a receipt is a fact, whoever brings it."""
    if _holds_the_lease(delivery, ended):
        _follow(delivery, ended, now)
    elif is_acknowledgement(ended.posted.end, explicit=delivery.destination.ack == "explicit"):
        acknowledge(delivery, actor=SENDER, now=now)


def _holds_the_lease(delivery: Delivery, ended: Ended) -> bool:
    return delivery.lease_epoch == ended.claim.epoch


def _note_health(ends: Iterable[Ended], deliveries: Mapping[str, Delivery], now: datetime) -> None:
    """In the destinations' order, so that two who record failures at once never wait for each other."""
    for ended in sorted(ends, key=lambda ended: ended.claim.destination_id):
        delivery = deliveries[ended.claim.delivery_id]
        if _holds_the_lease(delivery, ended):
            health.note(delivery.destination, ended.posted.end, now=now)


def _follow(delivery: Delivery, ended: Ended, now: datetime) -> None:
    posted, facts = ended.posted, _facts(delivery, ended.claim)
    asked_s = retry_after_s(posted.answer_headers.get("retry-after", ""), now)
    follows = after_try(facts, posted.end, retry_after_s=asked_s, roll=random.random())  # noqa: S311
    delivery.last_end, delivery.lease_until = posted.end, None
    if facts.tries:  # else a person asked for a further try while this one was under way
        _schedule(delivery, follows, now)
    if posted.end is TryEnd.NOT_SENT:
        delivery.tries_before = min(delivery.tries, delivery.tries_before + 1)
    _move(delivery, follows, now)
    delivery.save(update_fields=["last_end", "lease_until", "next_at", "held_at", "tries_before"])


def _facts(delivery: Delivery, claim: Claim) -> TryFacts:
    explicit = delivery.destination.ack == "explicit"
    return TryFacts(
        state=DeliveryState(delivery.state),
        tries=delivery.tries - delivery.tries_before,
        ack_deadline_s=delivery.destination.ack_deadline_s if explicit else None,
        replay=claim.replay,
    )


def _schedule(delivery: Delivery, follows: Follows, now: datetime) -> None:
    """The next try, where one follows; held where its destination was paused while this one was under way."""
    paused = follows.wait_s is not None and delivery.destination.paused_at is not None
    delivery.held_at = now if follows.held or paused else None
    waits = follows.wait_s is not None and delivery.held_at is None
    delivery.next_at = now + timedelta(seconds=follows.wait_s or 0) if waits else None


def _move(delivery: Delivery, follows: Follows, now: datetime) -> None:
    if follows.acknowledged:
        acknowledge(delivery, actor=SENDER, now=now)
    elif follows.dead_reason is not None:
        dead_letter(delivery, follows.dead_reason, actor=SENDER, now=now)
    elif follows.state is DeliveryState.SENT and delivery.state == DeliveryState.PENDING:
        mark_sent(delivery, actor=SENDER, now=now)


_WRITE_ENDS = """
    UPDATE ledger_deliverytry made SET ended_at = %(now)s, ended_as = ended.ended_as,
        sent_headers = ended.sent_headers::jsonb, status = ended.status,
        answer_headers = ended.answer_headers::jsonb, answer_head = ended.answer_head,
        answer_cut = ended.answer_cut, detail = ended.detail, took_ms = ended.took_ms
    FROM unnest(%(id)s::bigint[], %(ended_as)s::text[], %(sent_headers)s::text[], %(status)s::int[],
                %(answer_headers)s::text[], %(answer_head)s::bytea[], %(answer_cut)s::boolean[],
                %(detail)s::text[], %(took_ms)s::int[])
        AS ended (id, ended_as, sent_headers, status, answer_headers, answer_head, answer_cut, detail,
                  took_ms)
    WHERE made.id = ended.id AND made.ended_at IS NULL
    RETURNING made.id
"""


def _write_ends(ends: Sequence[Ended], now: datetime) -> set[int]:
    """Returns the tries that had no end yet."""
    rows = [_end_row(ended) for ended in ends]
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    with connection.cursor() as cursor:
        cursor.execute(_WRITE_ENDS, {"now": now, **columns})
        return {try_id for (try_id,) in cursor.fetchall()}


def _end_row(ended: Ended) -> dict[str, Any]:
    posted = ended.posted
    return {
        "id": ended.claim.try_id,
        "ended_as": posted.end,
        "sent_headers": json.dumps(dict(posted.sent_headers)),
        "status": posted.status,
        "answer_headers": json.dumps(_kept_headers(posted.answer_headers)),
        "answer_head": posted.answer[:KEPT_BYTES],
        "answer_cut": posted.answer_cut or len(posted.answer) > KEPT_BYTES,
        "detail": _storable(posted.detail[:1000]),
        "took_ms": posted.took_ms,
    }


def _kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The first of them, shortened: a consumer's answer is shown, never trusted with our space."""
    kept = list(headers.items())[:KEPT_HEADERS]
    return {_storable(name[:100]): _storable(value[:KEPT_HEADER_CHARACTERS]) for name, value in kept}


def _storable(text: str) -> str:
    """Without what PostgreSQL cannot keep: a try whose end cannot be stored would be made again and again."""
    return text.encode("utf-8", "replace").decode().replace("\0", "�")
