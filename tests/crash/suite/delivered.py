"""What became of the settlements of a schedule: what its consumers applied, beside what the ledger says."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger.models import Delivery, DeliveryTry, Event, Operation, Settlement
from ledger.rules.states import DeliveryState
from ledger.rules.vocabulary import EventKind

Mark = tuple[str, int]
"""An operation and the number of its settlement."""


@dataclass(frozen=True)
class Books:
    """What one consumer has on its disk: settlements in its inbox, those it applied, whom it heard of them by
    (delivery, webhook id, digest of the body, what it was), what it acknowledged by a call."""

    place: str
    inbox: frozenset[Mark]
    applied: Counter[Mark]
    heard: tuple[tuple[str, str, str, str], ...]
    acknowledged: frozenset[str]
    wrong: tuple[str, ...]


def books_of(path: Path, tenant_id: int, places: Sequence[str]) -> tuple[Books, ...]:
    """Those of the consumers of one tenant, in their order."""
    if not places:
        return ()
    operations = list(Operation.objects.filter(tenant_id=tenant_id).values_list("pk", flat=True))
    disk = sqlite3.connect(path, timeout=10.0)
    try:
        return tuple(_books(disk, place, number, operations) for number, place in enumerate(places))
    finally:
        disk.close()


def _books(disk: sqlite3.Connection, place: str, number: int, operations: list[str]) -> Books:
    marks = f"SELECT operation_id, settlement FROM inbox_{number} WHERE operation_id = ?"  # noqa: S608

    def rows(columns: str, table: str) -> list[tuple[Any, ...]]:
        return disk.execute(f"SELECT {columns} FROM {table} WHERE place = ?", (place,)).fetchall()  # noqa: S608

    return Books(
        place,
        inbox=frozenset(mark for operation in operations for mark in disk.execute(marks, (operation,))),
        applied=Counter(rows("operation_id, settlement", "applied")),
        heard=tuple(rows("delivery_id, webhook_id, digest, taken", "heard")),
        acknowledged=frozenset(delivery for (delivery,) in rows("delivery_id", "acknowledged")),
        wrong=tuple(words for (words,) in rows("words", "wrong")),
    )


def what_is_wrong(tenant_id: int, books: tuple[Books, ...]) -> Iterator[tuple[str, str]]:
    """Each as its kind and words: twice, undelivered, stuck, lost or history."""
    settled = list(Settlement.objects.filter(tenant_id=tenant_id).values_list("operation_id", "number"))
    for consumer in books:
        yield from _applied_wrongly(consumer, settled)
        yield from _told_wrongly(consumer)
        yield from _forgotten(consumer)
    yield from _stuck(tenant_id)


def _applied_wrongly(consumer: Books, settled: list[Mark]) -> Iterator[tuple[str, str]]:
    """Each settlement was heard of and applied once, except that one after which it heard a later one need
    not be applied."""
    newest = dict(sorted(settled))
    for mark in settled:
        times, words = consumer.applied[mark], f"settlement {mark[1]} of {mark[0]}"
        if times > 1:
            yield "twice", f"{words} was applied {times} times by {consumer.place}"
        if mark not in consumer.inbox or (not times and newest[mark[0]] == mark[1]):
            yield "undelivered", f"{words} never came to {consumer.place}"


def _told_wrongly(consumer: Books) -> Iterator[tuple[str, str]]:
    """One webhook id and the same bytes at every try, all of them signed; no redirect followed."""
    for delivery_id in {delivery_id for delivery_id, *_ in consumer.heard}:
        said = {
            (webhook_id, digest) for found, webhook_id, digest, _ in consumer.heard if found == delivery_id
        }
        if len(said) > 1:
            yield "history", f"{delivery_id} was told as {len(said)} different messages"
    for words in consumer.wrong:
        yield "history", f"{consumer.place}: {words}"


def _forgotten(consumer: Books) -> Iterator[tuple[str, str]]:
    """An acknowledgement that was answered is kept."""
    kept = set(
        Delivery.objects.filter(pk__in=consumer.acknowledged, acks__key__isnull=False).values_list("pk")
    )
    for delivery_id in consumer.acknowledged - {pk for (pk,) in kept}:
        yield "lost", f"the acknowledgement of {delivery_id}"


def _stuck(tenant_id: int) -> Iterator[tuple[str, str]]:
    for delivery in Delivery.objects.filter(tenant_id=tenant_id).exclude(state=DeliveryState.ACKED):
        owned = delivery.state == DeliveryState.DEAD_LETTERED and bool(delivery.owner_group_id)
        if not owned or delivery.next_at is not None:
            yield "stuck", f"{delivery.pk} is {delivery.state} after {delivery.tries} tries"


def counts(tenant_id: int, books: tuple[Books, ...]) -> dict[str, int]:
    """What the table adds up. Dead letters are counted when they became such, whatever came of them."""
    if not books:
        return {"deliveries": 0, "tries": 0, "duplicates_seen": 0, "dead_letters": 0}
    dead = Event.objects.filter(tenant_id=tenant_id, kind=EventKind.DELIVERY_DEAD_LETTERED)
    return {
        "deliveries": Delivery.objects.filter(tenant_id=tenant_id).count(),
        "tries": DeliveryTry.objects.filter(tenant_id=tenant_id).count(),
        "duplicates_seen": sum(taken == "duplicate" for consumer in books for *_, taken in consumer.heard),
        "dead_letters": dead.count(),
    }
