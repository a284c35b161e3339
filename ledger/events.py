"""Append events to the histories of operations, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from ledger.models import Agent, Attempt, Event, Operation, User
from ledger.models.ids import event_id
from ledger.rules.canonical import canonical_bytes
from ledger.rules.chain import event_hash
from ledger.rules.vocabulary import ActorKind, EventKind
from ledger.transactions import require_transaction


@dataclass(frozen=True)
class Actor:
    """Who changes something, as history names them."""

    kind: ActorKind
    name: str


RECONCILER = Actor(ActorKind.RECONCILER, "reconciler")
SENDER = Actor(ActorKind.SENDER, "sender")
SYSTEM = Actor(ActorKind.SYSTEM, "system")


def agent_actor(agent: Agent) -> Actor:
    return Actor(ActorKind.AGENT, agent.name)


def operator_actor(user: User) -> Actor:
    return Actor(ActorKind.OPERATOR, user.get_username())


def append(
    operation: Operation,
    kind: EventKind,
    *,
    actor: Actor,
    now: datetime,
    attempt: Attempt | None = None,
    **data: Any,
) -> Event:
    """Write the next event of `operation`, whose row the caller has locked. `data` is JSON."""
    require_transaction()
    event = next_event(operation, kind, actor=actor, now=now, attempt=attempt, **data)
    event.save(force_insert=True)
    operation.save(update_fields=["event_count", "head_hash"])
    return event


def append_all(events: Iterable[Event]) -> None:
    """Write many at once, each made by `next_event` from its operation, in the order they were made."""
    require_transaction()
    written = Event.objects.bulk_create(events)
    operations = {event.operation_id: event.operation for event in written}
    heads = [(one.pk, one.event_count, one.head_hash) for one in operations.values()]
    if heads:
        with connection.cursor() as cursor:
            cursor.execute(_MOVE_HEADS, list(map(list, zip(*heads, strict=True))))


_MOVE_HEADS = """
    UPDATE ledger_operation operation SET event_count = moved.event_count, head_hash = moved.head_hash
    FROM unnest(%s::text[], %s::int[], %s::text[]) AS moved (id, event_count, head_hash)
    WHERE operation.id = moved.id
"""


def next_event(
    operation: Operation,
    kind: EventKind,
    *,
    actor: Actor,
    now: datetime,
    attempt: Attempt | None = None,
    **data: Any,
) -> Event:
    """The event that follows, not written yet; `operation` counts it as its newest."""
    event = Event(
        id=event_id(),
        tenant_id=operation.tenant_id,
        operation=operation,
        attempt=attempt,
        sequence=operation.event_count + 1,
        kind=kind,
        actor_kind=actor.kind,
        actor=actor.name,
        body=canonical_bytes(data).decode(),
        at=now,
        previous_hash=operation.head_hash,
    )
    event.hash = event_hash(event.previous_hash, event.hashed_fields)
    operation.event_count, operation.head_hash = event.sequence, event.hash
    return event
