"""Append one event to the history of an operation, inside the caller's transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

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
    event.save(force_insert=True)
    operation.event_count, operation.head_hash = event.sequence, event.hash
    operation.save(update_fields=["event_count", "head_hash"])
    return event
