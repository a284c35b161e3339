"""What an adapter is asked and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from ledger.rules.reconcile import LookedUp


@dataclass(frozen=True, kw_only=True)
class Question:
    """What became of the sends of this operation? Everything an adapter may know of it.

    `args` None: the intent gave a hash only. `provider_request_id` empty: none is known. `first_sent_at`:
    of the operation, under whatever idempotency key; None: nobody can know when.
    """

    tool: str
    args: Mapping[str, Any] | None
    args_hash: str
    operation_key: str
    idempotency_key: str
    correlation_id: str
    provider_request_id: str = ""
    first_sent_at: datetime | None = None


class Adapter(Protocol):
    """One provider, as the ledger asks it.

    `look_up` reads and never changes anything there. It answers UNAVAILABLE for whatever it could not read
    to the end, and ABSENT only for a complete, readable answer in which nothing matched. It may raise: then
    the adapter itself has failed (AdapterMisconfigured, ledger.http.AddressRefused, or a bug).
    """

    def look_up(self, question: Question) -> LookedUp: ...


class AdapterMisconfigured(Exception):
    """What is configured cannot be used; the message names where, why, and what mends it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem
