"""What verbs are given and what they answer, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from ledger.models import Attempt, Decision, Event, Operation, ReviewItem, Run, RunCheckpoint, User
from ledger.rules.amounts import Amount, amount_text
from ledger.rules.authority import Reason
from ledger.rules.budgets import Units
from ledger.rules.directive import Directive
from ledger.rules.reports import ErrorClass, Report, Reported


class UnknownObject(Exception):
    """This tenant has no object of that id. Another tenant's is as unknown as one that never was."""


class NoRoomToPark(Exception):
    """The tenant has as many parked facts as it may have: the sender keeps this one and comes back."""


@dataclass(frozen=True)
class Standing:
    """Where an attempt stands, as every answer about it says."""

    operation: Operation
    attempt: Attempt
    directive: Directive
    reason: str
    review_item_id: str | None
    result_ref: str | None
    policy_version: int
    due_at: datetime | None = None
    retry_after_s: int | None = None


@dataclass(frozen=True)
class Intent:
    """One side effect as its agent posts it, before it is sent. `args_bytes` None: only the hash is known."""

    operation_key: str
    tool: str
    args_hash: str
    args_bytes: bytes | None
    args: dict[str, Any] | None
    run: str = ""
    step: str = ""
    task_id: str = ""
    actor: str = ""
    requested_by: User | None = None
    retry_of: str = ""
    expires_at: datetime | None = None


class IntentKind(StrEnum):
    """What became of a posted intent."""

    CREATED = "created"
    REPLAYED = "replayed"
    HELD = "held"
    KEY_REUSED = "key_reused"
    REFUSED = "refused"
    ARGS_REQUIRED = "args_required"
    COST_UNREADABLE = "cost_unreadable"


@dataclass(frozen=True)
class IntentAnswer:
    """`standing` is the attempt that answers for the intent (of a reused key: the held one). `problem` says
    what is missing in one that is not stored."""

    kind: IntentKind
    standing: Standing | None = None
    reasons: tuple[Reason, ...] = ()
    problem: str = ""


class LeaveProblem(StrEnum):
    """Why leave was not given; the problem slugs of the API."""

    IN_FLIGHT = "in-flight"
    ON_HOLD = "on-hold"
    ALREADY_DONE = "already-done"
    ARGS_CHANGED = "args-changed"
    LEDGER_EXECUTES = "ledger-executes"
    ILLEGAL_TRANSITION = "illegal-transition"
    NOT_AUTHORISED = "not-authorised"


@dataclass(frozen=True)
class LeaveGiven:
    """Permission to send exactly `attempt`, which is a new one where a successor was opened."""

    attempt: Attempt
    operation: Operation
    replayed: bool


@dataclass(frozen=True)
class LeaveRefused:
    """No permission. `reasons` are authority's where the problem is `not-authorised`, `because` the budget's
    figures. `may_read`: who asked could have leave for these arguments as far as its key goes, so it may be
    told them."""

    problem: LeaveProblem
    standing: Standing
    reasons: tuple[Reason, ...] = ()
    because: tuple[str, ...] = ()
    retry_after_s: int | None = None
    may_read: bool = False


def _as_json(amount: Amount) -> int | str:
    """A count as a number, money as text: no history holds a float."""
    return amount if isinstance(amount, int) else amount_text(amount)


def usage_in(data: Mapping[str, Any]) -> Units:
    """The usage of a report, from the report as it is kept."""
    used = data.get("usage", {}).items()
    return {unit: amount if isinstance(amount, int) else Decimal(amount) for unit, amount in used}


MOST_MESSAGE = 4_000
"""Characters kept of what an agent says: a long message loses its end rather than the whole report."""


@dataclass(frozen=True)
class OutcomeReport:
    """What an agent says became of one attempt."""

    worker_id: str
    outcome: str
    result_ref: str = ""
    provider_request_id: str = ""
    no_effect: bool = False
    retryable: bool = False
    error_class: str = ""
    message: str = ""
    usage: Units = field(default_factory=dict)
    args_hash: str = ""  # of what was sent
    occurred_at: str = ""  # RFC 3339

    @property
    def as_rule(self) -> Report:
        return Report(
            outcome=Reported(self.outcome),
            receipt=bool(self.result_ref or self.provider_request_id),
            no_effect=self.no_effect,
            retryable=self.retryable,
            error_class=ErrorClass(self.error_class or ErrorClass.UNKNOWN),
        )

    @property
    def as_data(self) -> dict[str, Any]:
        """The report as the history keeps it."""
        said = {
            "worker_id": self.worker_id,
            "outcome": self.outcome,
            "result_ref": self.result_ref,
            "provider_request_id": self.provider_request_id,
            "no_effect": self.no_effect,
            "retryable": self.retryable,
            "error_class": self.error_class,
            "message": self.message,
            "usage": {unit: _as_json(amount) for unit, amount in self.usage.items()},
            "args_hash": self.args_hash,
            "occurred_at": self.occurred_at,
        }
        return {name: value for name, value in said.items() if value}


@dataclass(frozen=True)
class OutcomeAnswer:
    """The state that followed; `evidence_only` where the report settled nothing."""

    standing: Standing
    evidence_only: bool
    replayed: bool


@dataclass(frozen=True)
class Told:
    """What a fact says it is about: an attempt's id, an operation's key, or both."""

    attempt_id: str = ""
    operation_key: str = ""


@dataclass(frozen=True)
class Kept:
    """A fact about something this tenant does not know (yet). `replayed`: it was told before."""

    replayed: bool


@dataclass(frozen=True)
class RunAnswer:
    """A run; `matches` is false where other limits or amounts were asked for than it has."""

    run: Run
    created: bool = False
    matches: bool = True
    replayed: bool = False


class CheckpointNotGrowing(Exception):
    """A run checkpoint with this sequence or a higher one is stored with other content: whoever writes this
    one goes on from an old state. `newest` is where the run has got to."""

    def __init__(self, newest: RunCheckpoint) -> None:
        super().__init__(f"the newest run checkpoint is {newest.sequence}")
        self.newest = newest


@dataclass(frozen=True)
class Decided:
    """What a decision changed: its row, the event that records it, the item and attempt as they are now."""

    decision: Decision
    event: Event
    item: ReviewItem
    attempt: Attempt

    @property
    def state(self) -> str:
        return self.attempt.state


class DecisionRefused(Exception):
    """A decision that the ledger's facts do not allow. Nothing was written.

    `code` is a word for programs, `reasons` authority's or plain ones, `message` a sentence for people.
    """

    def __init__(self, code: str, message: str, reasons: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reasons = reasons
