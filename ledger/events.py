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
    written = list(events)
    operations = {event.operation_id: event.operation for event in written}
    columns = {name: [getattr(event, name) for event in written] for name in _COLUMNS}
    heads = {
        name: [getattr(one, name) for one in operations.values()] for name in ("event_count", "head_hash")
    }
    with connection.cursor() as cursor:
        cursor.execute(_APPEND, {**columns, **heads, "operations": list(operations)})


_COLUMNS = (
    "id",
    "tenant_id",
    "operation_id",
    "attempt_id",
    "sequence",
    "kind",
    "actor_kind",
    "actor",
    "body",
    "at",
    "previous_hash",
    "hash",
)

_APPEND = """
    WITH moved AS (
        UPDATE ledger_operation operation SET event_count = head.event_count, head_hash = head.head_hash
        FROM unnest(%(operations)s::text[], %(event_count)s::int[], %(head_hash)s::text[])
            AS head (id, event_count, head_hash)
        WHERE operation.id = head.id
    )
    INSERT INTO ledger_event (id, tenant_id, operation_id, attempt_id, sequence, kind, actor_kind, actor,
                              body, at, previous_hash, hash, written_in)
    SELECT event.*, pg_current_xact_id()
    FROM unnest(%(id)s::text[], %(tenant_id)s::bigint[], %(operation_id)s::text[], %(attempt_id)s::text[],
                %(sequence)s::int[], %(kind)s::text[], %(actor_kind)s::text[], %(actor)s::text[],
                %(body)s::text[], %(at)s::timestamptz[], %(previous_hash)s::text[], %(hash)s::text[]) AS event
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
