"""What goes out. Every field is always there; null where it does not apply."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ledger.rules.directive import Directive
from ledger.rules.states import DeliveryState, Outcome, State


class ProblemAnswer(BaseModel):
    """An error (RFC 9457): it never means "go ahead". Where an attempt is concerned its standing is added."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    operation_id: str | None
    attempt_id: str | None
    retryable: bool
    safe_to_dispatch: bool
    request_id: str


class StandingAnswer(BaseModel):
    """Where one attempt stands, since when, and the one word its agent obeys. `due_at`: when the ledger goes
    on with it by itself (the send lease ends, the provider is asked again, the back-off is over)."""

    operation_id: str
    attempt_id: str
    attempt: int
    state: State
    outcome: Outcome
    args_hash: str
    policy_version: int
    state_since: datetime
    due_at: datetime | None
    directive: Directive
    reason: str | None
    review_url: str | None
    result_ref: str | None


class LeaveAnswer(StandingAnswer):
    """Leave to send exactly `args`, under exactly this key, until `lease_until`."""

    idempotency_key: str
    correlation_id: str
    args: dict[str, Any] | None
    lease_until: datetime
    lease_epoch: int


class LeaseAnswer(BaseModel):
    """The lengthened send lease."""

    attempt_id: str
    lease_until: datetime
    lease_epoch: int


class OutcomeAnswer(StandingAnswer):
    """What followed from a report; `evidence_only` where it settled nothing."""

    evidence_only: bool


class ParkedAnswer(BaseModel):
    """The fact is kept, whatever it is about; always this body."""

    parked: Literal[True] = True
    detail: Literal[
        "Kept: this tenant has no such attempt. It is joined to it when it appears, and shown to people."
    ] = "Kept: this tenant has no such attempt. It is joined to it when it appears, and shown to people."


class AttemptLine(BaseModel):
    """One attempt of an operation."""

    attempt_id: str
    attempt: int
    descends_from: str | None
    tool: str
    args_hash: str
    state: State
    reason: str | None
    policy_version: int
    created_at: datetime
    dispatched_at: datetime | None
    sent: bool = Field(
        description="Leave was given, or somebody says it was sent without; not that it arrived."
    )
    confirmed_by: str | None
    failed_by: str | None
    provider_request_id: str | None
    result_ref: str | None


class DeliveryLine(BaseModel):
    """One consumer's copy of one settlement."""

    delivery_id: str
    webhook_id: str
    destination: str
    settlement: int
    state: DeliveryState
    tries: int
    created_at: datetime
    next_at: datetime | None
    acked_at: datetime | None
    dead_reason: str | None


class OperationAnswer(StandingAnswer):
    """One operation: where its newest attempt stands, all attempts oldest first, its deliveries."""

    operation_key: str
    tool: str
    run: str | None
    step: str | None
    task_id: str | None
    retry_of: str | None
    created_at: datetime
    cancelled_at: datetime | None
    attempts: list[AttemptLine]
    deliveries: list[DeliveryLine]


class OperationsAnswer(BaseModel):
    """One page of operations, newest first; `next_cursor` is null on the last one."""

    operations: list[OperationAnswer]
    next_cursor: str | None


class EventLine(BaseModel):
    """One line of a history, chained by hash to the one before."""

    event_id: str
    sequence: int
    kind: str
    actor_kind: str
    actor: str
    attempt_id: str | None
    at: datetime
    data: dict[str, Any]
    previous_hash: str
    hash: str


class EventsAnswer(BaseModel):
    """One page of a history, oldest first; `next_cursor` is null where it ends now."""

    events: list[EventLine]
    next_cursor: str | None


class RecoverAnswer(BaseModel):
    """What the dead worker was sending."""

    attempts: list[StandingAnswer]


class BudgetLine(BaseModel):
    """One unit of a run's budget; `limit` and `left` are null where it is not limited. Whole numbers of what
    the ledger counts, texts of plain digits for money."""

    limit: int | str | None
    reserved: int | str
    spent: int | str
    left: int | str | None


class CheckpointLine(BaseModel):
    """Where the run can go on from."""

    sequence: int
    reference: str
    content_hash: str
    at: datetime


class RunAnswer(BaseModel):
    """A run with what is left of its budget, by unit, and its newest checkpoint."""

    run: str
    created_at: datetime
    budget: dict[str, BudgetLine]
    checkpoint: CheckpointLine | None
