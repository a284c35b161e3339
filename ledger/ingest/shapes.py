"""Turn what the ledger holds into the answers of the API."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse

from ledger.events import SYSTEM
from ledger.ingest import answers
from ledger.lifecycle import Standing
from ledger.lifecycle.case import Case
from ledger.lifecycle.standing import standing_in
from ledger.models import Attempt, BudgetAccount, Delivery, Event, Operation, Run, RunCheckpoint
from ledger.queries.arguments import stored_args
from ledger.queries.for_agents import newest_checkpoint
from ledger.rules.amounts import COUNTED, amount_text
from ledger.rules.keys import correlation_id
from ledger.rules.states import DeliveryState, Outcome, State

REPLAYED = "Idempotent-Replayed"


def mark_replayed(response: HttpResponse, *, replayed: bool) -> None:
    """Say that this very call had been answered before."""
    if replayed:
        response.headers[REPLAYED] = "true"


def mark_retry_after(response: HttpResponse, standing: Standing) -> None:
    """Say when it is worth asking again, where that is known."""
    for name, value in retry_after(standing.retry_after_s).items():
        response.headers[name] = value


def retry_after(seconds: float | None) -> dict[str, str]:
    return {} if seconds is None else {"Retry-After": str(max(1, math.ceil(seconds)))}


def standing_fields(request: HttpRequest, standing: Standing) -> dict[str, Any]:
    """The fields that every answer about an attempt carries."""
    operation, attempt = standing.operation, standing.attempt
    item = standing.review_item_id
    return {
        "operation_id": operation.pk,
        "attempt_id": attempt.pk,
        "attempt": attempt.number,
        "state": State(attempt.state),
        "outcome": Outcome(operation.outcome),
        "args_hash": attempt.args_hash,
        "policy_version": standing.policy_version,
        "state_since": attempt.entered_state_at,
        "due_at": standing.due_at,
        "directive": standing.directive,
        "reason": standing.reason or None,
        "review_url": request.build_absolute_uri(f"/review/{item}/") if item else None,
        "result_ref": standing.result_ref or None,
    }


def standing_answer(request: HttpRequest, standing: Standing) -> answers.StandingAnswer:
    return answers.StandingAnswer(**standing_fields(request, standing))


def leave_answer(request: HttpRequest, standing: Standing) -> answers.LeaveAnswer:
    """Leave as it was given to the attempt of `standing`."""
    operation, attempt = standing.operation, standing.attempt
    if attempt.lease_until is None:
        raise AssertionError(f"leave was given to {attempt.pk}, but it holds no lease")
    return answers.LeaveAnswer(
        **standing_fields(request, standing),
        idempotency_key=attempt.idempotency_key,
        correlation_id=correlation_id(operation.tenant_id, operation.operation_key),
        args=stored_args(attempt),
        lease_until=attempt.lease_until,
        lease_epoch=attempt.lease_epoch,
    )


def operation_answer(request: HttpRequest, operation: Operation, now: datetime) -> answers.OperationAnswer:
    """An operation read by `operations_of`. Its confirmed attempt, else its live one, else its newest speaks
    for it."""
    case = _case(operation, now)
    speaking = case.confirmed or case.live() or case.newest
    # Where an operation is relinked, the standing is its target's.
    own = {"operation_id": operation.pk, "outcome": Outcome(operation.outcome)}
    return answers.OperationAnswer(
        **{**standing_fields(request, standing_in(case, speaking)), **own},
        operation_key=operation.operation_key,
        tool=speaking.tool,
        run=operation.run.name if operation.run else None,
        step=operation.step or None,
        task_id=operation.task_id or None,
        retry_of=operation.retry_of or None,
        created_at=operation.created_at,
        cancelled_at=operation.cancelled_at,
        attempts=[_attempt_line(attempt) for attempt in case.attempts],
        deliveries=[delivery_line(delivery) for delivery in operation.deliveries.all()],
    )


def _case(operation: Operation, now: datetime) -> Case:
    """The operation's case, from what `operations_of` has read already."""
    return Case(
        operation=operation,
        attempts=list(operation.attempts.all()),
        items={item.attempt_id: item for item in operation.review_items.all()},
        approvals={approval.attempt_id: approval for approval in operation.approvals.all()},
        actor=SYSTEM,
        now=now,
    )


def event_line(event: Event) -> answers.EventLine:
    return answers.EventLine(
        event_id=event.pk,
        sequence=event.sequence,
        kind=event.kind,
        actor_kind=event.actor_kind,
        actor=event.actor,
        attempt_id=event.attempt_id,
        at=event.at,
        data=event.data,
        previous_hash=event.previous_hash,
        hash=event.hash,
    )


def run_answer(run: Run) -> answers.RunAnswer:
    """A run with what is left of its budget."""
    newest = newest_checkpoint(run)
    return answers.RunAnswer(
        run=run.name,
        created_at=run.created_at,
        budget={account.unit: _budget_line(account) for account in run.accounts.order_by("unit")},
        checkpoint=checkpoint_line(newest) if newest else None,
    )


def _budget_line(account: BudgetAccount) -> answers.BudgetLine:
    say: Callable[[Decimal], int | str] = int if account.unit in COUNTED else amount_text
    return answers.BudgetLine(
        limit=None if account.limit is None else say(account.limit),
        reserved=say(account.reserved),
        spent=say(account.spent),
        left=None if account.left is None else say(account.left),
    )


def checkpoint_line(checkpoint: RunCheckpoint) -> answers.CheckpointLine:
    return answers.CheckpointLine(
        sequence=checkpoint.sequence,
        reference=checkpoint.reference,
        content_hash=checkpoint.content_hash,
        at=checkpoint.at,
    )


def _attempt_line(attempt: Attempt) -> answers.AttemptLine:
    return answers.AttemptLine(
        attempt_id=attempt.pk,
        attempt=attempt.number,
        descends_from=attempt.descends_from_id,
        tool=attempt.tool,
        args_hash=attempt.args_hash,
        state=State(attempt.state),
        reason=attempt.reason or None,
        policy_version=attempt.policy.version,
        created_at=attempt.created_at,
        dispatched_at=attempt.dispatched_at,
        sent=attempt.was_sent,
        confirmed_by=attempt.confirmed_by or None,
        failed_by=attempt.failed_by or None,
        provider_request_id=attempt.provider_request_id or None,
        result_ref=attempt.result_ref or None,
    )


def delivery_line(delivery: Delivery) -> answers.DeliveryLine:
    """One delivery as every answer shows it."""
    return answers.DeliveryLine(
        delivery_id=delivery.pk,
        webhook_id=delivery.webhook_id,
        destination=delivery.destination.name,
        settlement=delivery.settlement.number,
        state=DeliveryState(delivery.state),
        tries=delivery.tries,
        created_at=delivery.created_at,
        next_at=delivery.next_at,
        acked_at=delivery.acked_at,
        dead_reason=delivery.dead_reason or None,
    )
