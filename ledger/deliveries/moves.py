"""The moves of a delivery, each with its event, in the caller's transaction. The only writer of its state."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from ledger import events
from ledger.events import Actor
from ledger.models import Delivery, DeliveryAck
from ledger.models.people import ApiKey
from ledger.owners import owner_of
from ledger.policies import rule_of
from ledger.rules.deliveries import DeadReason, TryEnd
from ledger.rules.ownership import Question
from ledger.rules.states import DeliveryState
from ledger.rules.vocabulary import EventKind
from ledger.transactions import require_transaction


def mark_sent(delivery: Delivery, *, actor: Actor, now: datetime) -> None:
    """A try may have been received, and nobody has acknowledged it yet."""
    _move(delivery, DeliveryState.SENT, EventKind.DELIVERY_SENT, actor=actor, now=now)


def acknowledge(
    delivery: Delivery, *, actor: Actor, now: datetime, key: ApiKey | None = None, duplicate: bool = False
) -> None:
    """Store an acknowledgement. The first one ends the delivery, from whatever state; later ones are kept. A
    try that is under way keeps its lease, and so its destination's place, until it has ended."""
    require_transaction()
    DeliveryAck.objects.create(
        tenant_id=delivery.tenant_id, delivery=delivery, key=key, duplicate=duplicate, at=now
    )
    if delivery.state == DeliveryState.ACKED:
        return
    delivery.acked_at = now
    delivery.next_at = delivery.held_at = None
    _move(
        delivery,
        DeliveryState.ACKED,
        EventKind.DELIVERY_ACKED,
        actor=actor,
        now=now,
        also=["acked_at", "next_at", "held_at"],
    )


def acknowledge_received(deliveries: Sequence[Delivery], *, actor: Actor, now: datetime) -> None:
    """The same of many at once, each for its first time, by tries that hold their leases and end with this.
    Many rows to a statement: one by one they would cost four times the work."""
    require_transaction()
    if not deliveries:
        return
    after: dict[str, Any] = {"state": DeliveryState.ACKED, "acked_at": now, "next_at": None, "held_at": None}
    after |= {"last_end": TryEnd.RECEIVED, "lease_until": None}
    for one in deliveries:
        for name, value in after.items():
            setattr(one, name, value)
    with connection.cursor() as cursor:
        cursor.execute(_RECEIVED, {**after, "ids": [one.pk for one in deliveries]})
    events.append_all(
        events.next_event(one.operation, EventKind.DELIVERY_ACKED, actor=actor, now=now, **_said(one))
        for one in deliveries
    )


_RECEIVED = """
    WITH received AS (
        UPDATE ledger_delivery SET state = %(state)s, acked_at = %(acked_at)s, next_at = %(next_at)s,
            held_at = %(held_at)s, last_end = %(last_end)s, lease_until = %(lease_until)s
        WHERE id = ANY(%(ids)s) RETURNING tenant_id, id
    )
    INSERT INTO ledger_deliveryack (tenant_id, delivery_id, duplicate, at)
    SELECT tenant_id, id, FALSE, %(acked_at)s FROM received
"""


def dead_letter(
    delivery: Delivery, reason: DeadReason, *, actor: Actor, now: datetime, why: str = ""
) -> None:
    """Nobody tries it any more; until a person redelivers it, it is the team's whom the rules of ownership
    name, else the first one's."""
    delivery.dead_at, delivery.dead_reason = now, reason
    delivery.next_at = delivery.held_at = None
    delivery.owner_group_id = owner_of(_question(delivery), tenant_id=delivery.tenant_id).team
    _move(
        delivery,
        DeliveryState.DEAD_LETTERED,
        EventKind.DELIVERY_DEAD_LETTERED,
        actor=actor,
        now=now,
        also=["dead_at", "dead_reason", "owner_group", "next_at", "held_at"],
        reason=str(reason),
        why=why,
    )


def _question(delivery: Delivery) -> Question:
    attempt = delivery.settlement.attempt
    return Question(attempt.tool, None, rule_of(attempt).effect, destination=delivery.destination.name)


def send_again(delivery: Delivery, *, actor: Actor, now: datetime, why: str, plan_id: str = "") -> None:
    """Make it due once more, with the schedule from its beginning; one that is ACKED stays so and only gets
    a further try. To a paused destination it is held."""
    paused = delivery.destination.paused_at is not None
    delivery.next_at, delivery.held_at = (None, now) if paused else (now, None)
    delivery.tries_before = delivery.tries
    target = DeliveryState.PENDING if delivery.state == DeliveryState.DEAD_LETTERED else delivery.state
    _move(
        delivery,
        DeliveryState(target),
        EventKind.DELIVERY_REDELIVERED,
        actor=actor,
        now=now,
        also=["next_at", "held_at", "tries_before"],
        why=why,
        plan=plan_id,
    )


def _move(
    delivery: Delivery,
    target: DeliveryState,
    kind: EventKind,
    *,
    actor: Actor,
    now: datetime,
    also: list[str] | None = None,
    **data: str,
) -> None:
    """The operation's row is locked, and is this delivery's `operation`."""
    require_transaction()
    delivery.state = target
    delivery.save(update_fields=["state", *(also or [])])
    events.append(
        delivery.operation,
        kind,
        actor=actor,
        now=now,
        attempt=None,
        **_said(delivery),
        **data,
    )


def _said(delivery: Delivery) -> dict[str, Any]:
    """What every event of a delivery says of it."""
    return {
        "delivery": delivery.pk,
        "destination": delivery.destination_id,
        "settlement": delivery.settlement.number,
        "tries": delivery.tries,
    }
