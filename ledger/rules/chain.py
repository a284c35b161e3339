"""The history of an operation as a chain of hashes: each event's hash covers the one before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ledger.rules.canonical import canonical_bytes, content_hash

# What the first event of a chain names as the hash before it.
CHAIN_START = "v1:sha256:" + "0" * 64


@dataclass(frozen=True)
class ChainedEvent:
    """One stored line of a history; `fields` is everything its hash covers beside the hash before."""

    sequence: int
    previous_hash: str
    hash: str
    fields: Mapping[str, object]


@dataclass(frozen=True)
class Break:
    """The first place where a history is not what was written."""

    sequence: int
    problem: str


@dataclass(frozen=True)
class Head:
    """A hash remembered elsewhere (a signed history checkpoint), which the history must still contain."""

    sequence: int
    hash: str


def event_hash(previous_hash: str, fields: Mapping[str, object]) -> str:
    """`v1:sha256:…` over the hash before and the event's fields (JSON values only; ValueError otherwise)."""
    return content_hash(canonical_bytes([previous_hash, dict(fields)]))


def verify_chain(events: Iterable[ChainedEvent], *, heads: Iterable[Head] = ()) -> Break | None:
    """The first break of a whole history given in order from sequence 1, or None.

    Without `heads` a cut tail cannot be seen: what was never remembered elsewhere cannot be missed.
    """
    remembered = {head.sequence: head.hash for head in heads}
    walk = _Walk()
    for event in events:
        problem = walk.problem_with(event, remembered.pop(event.sequence, None))
        if problem:
            return Break(walk.expected, problem)
        walk.step(event)
    return Break(min(remembered), "cut: a remembered event is missing") if remembered else None


@dataclass
class _Walk:
    expected: int = 1
    previous_hash: str = field(default=CHAIN_START)

    def problem_with(self, event: ChainedEvent, remembered_hash: str | None) -> str | None:
        if event.sequence != self.expected:
            return f"gap: sequence {event.sequence} stands where {self.expected} belongs"
        if event.previous_hash != self.previous_hash:
            return "swapped: it does not follow the event before it"
        if event.hash != event_hash(event.previous_hash, event.fields):
            return "edited: its hash does not cover what it says"
        if remembered_hash not in (None, event.hash):
            return "rewritten: a remembered event had another hash"
        return None

    def step(self, event: ChainedEvent) -> None:
        self.expected += 1
        self.previous_hash = event.hash
