"""Twins: the same call, in the same step of the same run, under another operation key."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from ledger.lifecycle.case import Case
from ledger.lifecycle.locking import lock_name
from ledger.lifecycle.moves import void_approval
from ledger.lifecycle.settled_by import to_review
from ledger.models import Approval, Attempt, Operation
from ledger.policies import rule_of
from ledger.rules.policy import Rule
from ledger.rules.states import State
from ledger.rules.vocabulary import Effect, ReviewReason

_DID_NOT_HAPPEN = (State.FAILED, State.CANCELLED, State.SUPERSEDED)


def lock_twins(operation: Operation, *, tool: str, args_hash: str) -> None:
    """Hold tenant, tool, arguments, run and step until the transaction ends, so that twins are a queue."""
    if operation.run_id is not None and operation.step:
        lock_name(operation.tenant_id, tool, args_hash, operation.run_id, operation.step)


def twins_of(operation: Operation, *, tool: str, args_hash: str) -> QuerySet[Attempt]:
    """Attempts of other operations that may do, or have done, the very same; oldest first."""
    if operation.run_id is None or not operation.step:
        return Attempt.objects.none()
    same = Attempt.objects.filter(
        tenant_id=operation.tenant_id,
        tool=tool,
        args_hash=args_hash,
        operation__run_id=operation.run_id,
        operation__step=operation.step,
    )
    others = same.exclude(operation=operation).exclude(state__in=_DID_NOT_HAPPEN)
    return others.select_related("operation").order_by("created_at", "pk")


def is_suspected_at_birth(operation: Operation, rule: Rule, *, tool: str, args_hash: str) -> bool:
    """Is an intent to be held because its twin exists? A `read` has nothing to duplicate."""
    if rule.effect is Effect.READ:
        return False
    lock_twins(operation, tool=tool, args_hash=args_hash)
    return twins_of(operation, tool=tool, args_hash=args_hash).exists()


def sent_twins(case: Case, attempt: Attempt) -> QuerySet[Attempt]:
    """Twins that were sent or are confirmed: to people another send of this attempt is a question."""
    twins = twins_of(case.operation, tool=attempt.tool, args_hash=attempt.args_hash)
    return twins.filter(
        Q(dispatched_at__isnull=False) | Q(maybe_sent=True) | Q(state=State.OUTCOME_CONFIRMED)
    )


def hold_for_twin(case: Case, attempt: Attempt, approval: Approval | None) -> bool:
    """At leave, which holds their lock, a twin counts that was sent or is confirmed and that the approval did
    not name: the attempt goes to a person, and the approval, which knew nothing of it, is void."""
    if rule_of(attempt).effect is Effect.READ:
        return False
    if not sent_twins(case, attempt).exclude(operation_id__in=named_by(approval)).exists():
        return False
    void_approval(case, attempt, "a twin was sent")
    held: dict[str, Any] = {} if attempt.was_sent or attempt.held_at else {"held_at": case.now}
    to_review(case, attempt, ReviewReason.SUSPECTED_DUPLICATE, **held)
    return True


def named_by(approval: Approval | None) -> set[str]:
    """The operations of the twins that every approver was shown."""
    if approval is None:
        return set()
    return set.intersection(*(set(vote.twins) for vote in approval.votes.all()))
