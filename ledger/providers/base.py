"""What an adapter is asked and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from ledger.rules.looked_up import LookedUp


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


class SentKind(StrEnum):
    """What became of one send, as far as its answer says."""

    ACCEPTED = "accepted"  # it happened; the reference is the receipt
    REFUSED = "refused"  # the provider will not do it, and did not
    NOT_SENT = "not_sent"  # nothing left here
    UNKNOWN = "unknown"  # everything else


@dataclass(frozen=True, kw_only=True)
class SendAnswer:
    """One send's answer. `reachable`: did the provider answer at all readably? None: it was not asked.
    `refused_credential`: what it would not take, by the name of its environment variable."""

    kind: SentKind
    reference: str = ""
    request_id: str = ""
    error_class: str = ""
    detail: str = ""
    reachable: bool | None = None
    refused_credential: str = ""


@runtime_checkable
class SendingAdapter(Adapter, Protocol):
    """A provider through which the ledger itself can send.

    `send` sends exactly once and never again by itself: what it asks is fixed by `call`, with the provider
    key and the correlation id in it. It answers ACCEPTED only with a reference, REFUSED and NOT_SENT only
    where that is certain, and UNKNOWN for everything else; whatever it raises is taken for UNKNOWN.
    `wants_rest_s`: for so long the provider is to be left alone, so leave is not even asked for.
    """

    def send(self, call: Question) -> SendAnswer: ...

    def wants_rest_s(self) -> float: ...


class AdapterMisconfigured(Exception):
    """What is configured cannot be used; the message names where, why, and what mends it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem
