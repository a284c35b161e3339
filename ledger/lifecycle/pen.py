"""How a case is written: each row at once, or the rows of many cases together, many to a statement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from django.db import models

from ledger import events, outbox
from ledger.models import Attempt, Event, LookUp, Settlement
from ledger.models.many import update_many


class LostRace(AssertionError):
    """The attempt was not in the state this transaction saw under its lock: a lock is missing somewhere."""


class Pen(Protocol):
    """What is set in a row's attributes already, or is a row not stored yet, is written by these."""

    def append(self, event: Event) -> None: ...

    def change(self, row: models.Model, *names: str) -> None: ...

    def change_from(self, source: str, row: Attempt, *names: str) -> None:
        """Only where its stored state is this one. Raises LostRace."""

    def keep(self, look_up: LookUp) -> None: ...

    def settle(
        self, settlement: Settlement, planned: tuple[outbox.Planned, ...], *, now: datetime
    ) -> None: ...


class AtOnce:
    """Every row in a statement of its own, so that whatever is asked afterwards sees it."""

    def append(self, event: Event) -> None:
        events.append_all([event])

    def change(self, row: models.Model, *names: str) -> None:
        row.save(update_fields=names)

    def change_from(self, source: str, row: Attempt, *names: str) -> None:
        stored = Attempt.objects.filter(pk=row.pk, state=source)
        if stored.update(**{name: getattr(row, name) for name in names}) != 1:
            raise LostRace(f"{row.pk} is no longer {source}")

    def keep(self, look_up: LookUp) -> None:
        look_up.save(force_insert=True)

    def settle(self, settlement: Settlement, planned: tuple[outbox.Planned, ...], *, now: datetime) -> None:
        settlement.save(force_insert=True)
        outbox.enqueue(settlement, planned, now=now)


@dataclass
class _Changed:
    row: models.Model
    names: dict[str, None] = field(default_factory=dict)
    source: str | None = None


class Together:
    """Nothing is written before `write`; until then nothing may be asked that depends on it."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._changed: dict[tuple[type[models.Model], object], _Changed] = {}
        self._look_ups: list[LookUp] = []
        self._settled: list[tuple[Settlement, tuple[outbox.Planned, ...]]] = []

    def append(self, event: Event) -> None:
        self._events.append(event)

    def change(self, row: models.Model, *names: str) -> None:
        changed = self._changed.setdefault((type(row), row.pk), _Changed(row))
        if changed.row is not row:
            raise AssertionError(f"two copies of {row.pk} are changed")
        changed.names.update(dict.fromkeys(names))

    def change_from(self, source: str, row: Attempt, *names: str) -> None:
        self.change(row, *names)
        self._changed[type(row), row.pk].source = source

    def keep(self, look_up: LookUp) -> None:
        self._look_ups.append(look_up)

    def settle(
        self,
        settlement: Settlement,
        planned: tuple[outbox.Planned, ...],
        *,
        now: datetime,  # noqa: ARG002  (all are told at one time)
    ) -> None:
        self._settled.append((settlement, planned))

    def write(self, *, now: datetime) -> None:
        """In the order in which rows refer to each other: what changed first is written first."""
        for those in _alike(self._changed.values()):
            sources = [one.source for one in those if one.source is not None]
            changed = update_many([one.row for one in those], those[0].names, states=sources)
            if changed != len(those):
                raise LostRace(f"{changed} of {len(those)} were what they were taken for")
        events.append_all(self._events)
        LookUp.objects.bulk_create(self._look_ups)
        Settlement.objects.bulk_create([settlement for settlement, _ in self._settled])
        outbox.enqueue_all(self._settled, now=now)


def _alike(changed: Iterable[_Changed]) -> Iterable[list[_Changed]]:
    found: dict[tuple[object, ...], list[_Changed]] = {}
    for one in changed:
        kind = (type(one.row), tuple(sorted(one.names)), one.source is None)
        found.setdefault(kind, []).append(one)
    return found.values()
