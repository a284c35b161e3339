"""What the demo's agent is asked to do, where on the way it is killed, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

RESOURCES = {
    "refund.create": "refunds",
    "mail.send": "messages",
    "ticket.open": "tickets",
    "deploy.run": "deployments",
}
"""Which resource of the provider each tool writes to."""


class Boundary(StrEnum):
    """A place between two steps at which a process can die."""

    BEFORE_LEAVE = "before_leave"
    BEFORE_SENDING = "before_sending"
    BEFORE_ANSWER = "before_answer"
    BEFORE_REPORT = "before_report"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One operation of one tenant's agent; `name` is what the log calls it."""

    tenant: str
    name: str
    key: str
    tool: str
    args: Mapping[str, Any]
    step: str
    requested_by: str | None = None
    stop_at: Boundary | None = None

    @property
    def resource(self) -> str:
        return RESOURCES[self.tool]

    def without_stop(self) -> Job:
        """The same work for the next life of the agent."""
        return replace(self, stop_at=None)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Job:
        stop_at = document["stop_at"]
        return cls(**{**document, "stop_at": Boundary(stop_at) if stop_at else None})


class Said(StrEnum):
    """What came of one go at a job."""

    AT_BOUNDARY = "at_boundary"
    DONE = "done"
    WAITS = "waits"
    HELD = "held"
    CLOSED = "closed"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The agent's line about one go. `sent`: this go had the effect itself."""

    said: Said
    state: str = ""
    reason: str = ""
    result_ref: str = ""
    correlation_id: str = ""
    sent: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Reply:
        return cls(**{**document, "said": Said(document["said"])})
