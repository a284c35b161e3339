"""What comes in: strict, and nothing beside the named fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ledger.ingest.fields import (
    MOST_SEQUENCE,
    Amount,
    ContentHash,
    FreeText,
    Limit,
    Money,
    Name,
    Reference,
    RunName,
    ShortText,
    Time,
    ToolName,
    WorkerName,
)
from ledger.rules.amounts import NotReadable, read_unit
from ledger.rules.states import Outcome, State

MOST_ROWS = 200
MOST_UNITS = 16


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class IntentBody(_Strict):
    """One side effect that is to happen, before anything is sent."""

    operation_key: Name = Field(examples=["invoice:tenant-7:2026-08-11:send"])
    tool: ToolName = Field(examples=["email.send"])
    args: dict[str, Any] | None = Field(
        None, description="What is to be sent. A hash-only intent leaves it out."
    )
    args_hash: ContentHash | None = Field(None, description="Compared with args, or in their place.")
    run: RunName | None = None
    step: Name | None = None
    task_id: Name | None = None
    actor: ShortText | None = Field(None, description="Who acts, in the agent's own words.")
    requested_by: Name | None = Field(None, description="User name or e-mail of the person who asked for it.")
    retry_of: Name | None = Field(None, description="The operation key this is a new try of.")
    expires_at: Time | None = Field(None, description="Not to be sent after this.")
    worker_id: WorkerName | None = None


class LeaveBody(_Strict):
    """A request for leave to send."""

    worker_id: WorkerName = Field(description="One life of one process.")
    leave_id: WorkerName | None = Field(None, description="Random per send; worker_id stands in.")
    args_hash: ContentHash = Field(description="Of what will be sent.")


class HeartbeatBody(_Strict):
    """The worker is still sending."""

    worker_id: WorkerName
    lease_epoch: int = Field(ge=0, le=2**31 - 1)


class ProviderRequestBody(_Strict):
    """The provider's own id of the request, the moment it is known."""

    worker_id: WorkerName
    provider_request_id: Name
    operation_key: Name | None = Field(
        None, description="Says what it is about where the ledger does not know the attempt."
    )


class ErrorBody(_Strict):
    """How a send failed."""

    model_config = ConfigDict(strict=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    class_: Literal["validation", "declined", "refused", "not_connected", "timeout", "reset", "unknown"] = (
        Field(alias="class")
    )
    message: str = Field("", description="Kept up to 4,000 characters.")


class _ByUnit(_Strict):
    """Amounts by unit: what the ledger counts, and beside it money in any unit (`EUR`, `credits`)."""

    model_config = ConfigDict(strict=True, extra="allow")

    @model_validator(mode="after")
    def _names_units(self) -> Self:
        named = [_unit(name) for name in self.model_extra or {}]
        if len(named) > MOST_UNITS:
            raise ValueError(f"names more than {MOST_UNITS} units")
        if len(set(named)) < len(named):
            raise ValueError("names a unit twice: usd and USD are one")
        return self

    @property
    def by_unit(self) -> Mapping[str, Any]:
        """What was named, in the spelling units are kept under."""
        counted = {name: getattr(self, name) for name in type(self).model_fields}
        money = {read_unit(name): amount for name, amount in (self.model_extra or {}).items()}
        return {name: amount for name, amount in counted.items() if amount is not None} | money


def _unit(name: str) -> str:
    try:
        return read_unit(name)
    except NotReadable as problem:
        raise ValueError(f"{name[:40]!a} {problem}") from None


class AmountsBody(_ByUnit):
    """What was used, by unit: whole tool calls, turns and tokens, and exact amounts of any unit of money."""

    __pydantic_extra__: dict[str, Money] = Field(init=False)

    tool_calls: Amount | None = None
    turns: Amount | None = None
    tokens: Amount | None = None


class _Outcome(_Strict):
    worker_id: WorkerName
    outcome: Literal["succeeded", "failed", "unknown"]
    result_ref: Reference | None = None
    provider_request_id: Name | None = None
    no_effect: bool = False
    retryable: bool = False
    error: ErrorBody | None = None
    usage: AmountsBody | None = None
    args_hash: ContentHash | None = Field(
        None, description="Of what was sent: compared with what was meant to be."
    )
    occurred_at: Time | None = Field(None, description="When it happened, where that is known.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if self.outcome != "failed" and (self.no_effect or self.retryable):
            raise ValueError("no_effect and retryable go with the outcome failed only")
        if self.outcome == "succeeded" and self.error is not None:
            raise ValueError("error does not go with the outcome succeeded")
        return self


class OutcomeBody(_Outcome):
    """What the agent knows about one send. `no_effect` and `retryable` go with `failed` only."""

    operation_key: Name | None = Field(
        None, description="Says what it is about where the ledger does not know the attempt."
    )


class EarlyOutcomeBody(_Outcome):
    """An outcome of which only the operation's key is known: the intent may not have come yet."""

    operation_key: Name


class CancelBody(_Strict):
    """Why the operation is no longer wanted."""

    reason: FreeText
    worker_id: WorkerName | None = None


class RecoverBody(_Strict):
    """The process of this agent that is dead."""

    worker_id: WorkerName


class AckBody(_Strict):
    """Which message was received; `duplicate` where the consumer had applied it before."""

    webhook_id: Name
    duplicate: bool = False


class RunBody(_ByUnit):
    """The limits of a new run; none where left out.

    Beside the counted units any unit of money: `{"EUR": "500.00", "USD": null}` limits euros, counts dollars
    without a limit, and refuses every other unit.
    """

    __pydantic_extra__: dict[str, Money | None] = Field(init=False)

    tool_calls: Limit | None = None
    turns: Limit | None = None
    tokens: Limit | None = None


class OpenRunBody(_Strict):
    """Limits count on creation only."""

    limits: RunBody = Field(default_factory=RunBody)


class UsageBody(_Strict):
    """Usage outside any attempt; counted once per usage_id."""

    usage_id: Name
    usage: AmountsBody


class CheckpointBody(_Strict):
    """Where the run can go on from."""

    sequence: int = Field(ge=0, le=MOST_SEQUENCE)
    reference: Reference
    content_hash: ContentHash


class OperationFilters(BaseModel):
    """Which operations, newest first. All that are given must fit."""

    operation_key: Name | None = None
    state: State | None = Field(None, description="Of any of its attempts.")
    outcome: Outcome | None = None
    tool: ToolName | None = None
    run: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    args_hash: ContentHash | None = None
    limit: int = Field(50, ge=1, le=MOST_ROWS)
    cursor: str | None = Field(None, max_length=2000)


class EventsPage(BaseModel):
    """Which part of a history, oldest first."""

    limit: int = Field(100, ge=1, le=MOST_ROWS)
    cursor: str | None = Field(None, max_length=2000)
