"""What came of asking a provider about one attempt, and of what is known of those before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal


class LookedUpKind(StrEnum):
    """What came of asking the provider."""

    FOUND = "found"
    ABSENT = "absent"
    UNAVAILABLE = "unavailable"  # timeout, 429, 5xx, unreadable, incomplete listing
    ADAPTER_FAILED = "adapter_failed"
    NO_LOOKUP = "no_lookup"


ANSWERED = frozenset({LookedUpKind.FOUND, LookedUpKind.ABSENT})
"""The provider itself said so, and could be read."""


@dataclass(frozen=True)
class Record:
    """One object the provider has. `content`: its hash, amount and target against the attempt's."""

    reference: str | None
    content: Literal["same", "other"]
    state: Literal["done", "in_progress", "failed", "reversed"]
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class LookedUp:
    """One answer. `canary_seen` False: the look-up could not see an object known to exist either.
    `refused_credential`: what the provider would not take, by name; somebody has to mend it. `endless`:
    unavailable not because the provider is, but because its listing could not be read to an end."""

    kind: LookedUpKind
    records: tuple[Record, ...] = ()
    canary_seen: bool | None = None
    detail: str = ""
    refused_credential: str = ""
    endless: bool = False

    def __post_init__(self) -> None:
        if bool(self.records) != (self.kind is LookedUpKind.FOUND):
            raise ValueError(f"a look-up answered {self.kind} with {len(self.records)} records")
        if self.endless and self.kind is not LookedUpKind.UNAVAILABLE:
            raise ValueError(f"an endless listing was answered {self.kind}")


@dataclass(frozen=True)
class Earlier:
    """An earlier attempt of the operation. `references`: those that tie records to it. `failed`: those of
    records that its look-ups found failed there, before a later one was sent. `confirmed`: it happened.
    `left_nothing`: no record of it can be there."""

    references: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    confirmed: bool = False
    left_nothing: bool = False

    def owns(self, record: Record) -> bool:
        """Is this record tied to it? What failed then and says something else now is news."""
        failed_still = record.state == "failed" and record.reference in self.failed
        return failed_still or record.reference in self.references

    def may_have_failed_unseen(self, shown: frozenset[str | None]) -> bool:
        """May a record that failed there be its own, although others are told from it? `shown`: all
        references of an answer."""
        is_told = self.left_nothing or self.confirmed or self.failed or self.references & shown
        return not is_told
