"""The history of operations, as it is read back: whole chains, to be walked or taken elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from django.db.models import QuerySet

from ledger.models import Event, Operation
from ledger.rules.chain import Break, ChainedEvent, Head, verify_chain

CHUNK = 2_000


@dataclass(frozen=True)
class Chain:
    """The whole history of one operation, and the head its row remembers."""

    operation_id: str
    tenant_id: int
    head: Head | None
    events: tuple[ChainedEvent, ...]

    def find_break(self) -> Break | None:
        """The first place where it is not what was written; a cut tail is seen by the head."""
        if self.head is None:
            return Break(1, "added: the operation knows of no event") if self.events else None
        if len(self.events) > self.head.sequence:
            return Break(self.head.sequence + 1, "added: the operation's head is before it")
        return verify_chain(self.events, heads=[self.head])


def chains_of(tenant_id: int | None = None) -> Iterator[Chain]:
    """The chain of every operation of one tenant, or of all."""
    operations, events = Operation.objects.all(), Event.objects.all()
    if tenant_id is not None:
        operations, events = operations.filter(tenant_id=tenant_id), events.filter(tenant_id=tenant_id)
    return chains(operations, events)


def chains(operations: QuerySet[Operation], events_of_them: QuerySet[Event]) -> Iterator[Chain]:
    """Each operation's chain, in the order of their ids, read in chunks. Call it inside one snapshot."""
    rows = events_of_them.order_by("operation_id", "sequence")
    events = groupby(rows.iterator(chunk_size=CHUNK), key=lambda event: event.operation_id)
    upcoming = next(events, None)
    for operation in operations.order_by("pk").iterator(chunk_size=CHUNK):
        while upcoming is not None and upcoming[0] < operation.pk:  # of an operation that is not there
            upcoming = next(events, None)
        found: tuple[ChainedEvent, ...] = ()
        if upcoming is not None and upcoming[0] == operation.pk:
            found = tuple(as_chained(event) for event in upcoming[1])
            upcoming = next(events, None)
        yield Chain(operation.pk, operation.tenant_id, _head(operation), found)


def as_chained(event: Event) -> ChainedEvent:
    """A stored event as the chain's rules read it, without the database."""
    return ChainedEvent(event.sequence, event.previous_hash, event.hash, event.hashed_fields)


def _head(operation: Operation) -> Head | None:
    return Head(operation.event_count, operation.head_hash) if operation.event_count else None
