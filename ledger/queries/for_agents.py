"""What agents read over the API: operations, their histories, runs, and the people they may name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from ledger.models import (
    Agent,
    Approval,
    Attempt,
    Event,
    Operation,
    ReviewGroup,
    ReviewItem,
    Run,
    RunCheckpoint,
    User,
)


@dataclass(frozen=True)
class Wanted:
    """Filters of a list of operations, where not None. `state`, `tool`, `args_hash`: of any attempt."""

    operation_key: str | None = None
    outcome: str | None = None
    run: str | None = None
    state: str | None = None
    tool: str | None = None
    args_hash: str | None = None


@dataclass(frozen=True)
class Place:
    """The last operation of the page before."""

    created_at: datetime
    operation_id: str


def operations_of(tenant_id: int) -> QuerySet[Operation]:
    """The tenant's operations with all that an answer shows: of items and approvals the open ones only."""
    attempts = Attempt.objects.select_related("policy", "relinked_to").order_by("number")
    items = ReviewItem.objects.filter(closed_at=None)
    approvals = Approval.objects.filter(used_at=None, voided_at=None)
    return (
        Operation.objects.filter(tenant_id=tenant_id)
        .select_related("run")
        .prefetch_related(
            Prefetch("attempts", attempts),
            Prefetch("review_items", items),
            Prefetch("approvals", approvals),
            "deliveries__destination",
            "deliveries__settlement",
        )
    )


def operations_newest_first(
    tenant_id: int, wanted: Wanted, *, after: Place | None, most: int
) -> list[Operation]:
    """At most `most` operations that fit every filter, starting after a place."""
    found = operations_of(tenant_id).filter(_direct(wanted))
    by_attempt = _of_an_attempt(wanted)
    if by_attempt:
        found = found.filter(Exists(Attempt.objects.filter(by_attempt, operation=OuterRef("pk"))))
    if after:
        found = found.filter(
            Q(created_at__lt=after.created_at) | Q(created_at=after.created_at, pk__lt=after.operation_id)
        )
    return list(found.order_by("-created_at", "-pk")[:most])


def head_of(tenant_id: int, operation_id: str) -> int:
    """The number of the newest event of an operation; 0 where the tenant has none of that id."""
    found = Operation.objects.filter(tenant_id=tenant_id, pk=operation_id)
    return found.values_list("event_count", flat=True).first() or 0


def events_after(operation: Operation, sequence: int, *, most: int) -> list[Event]:
    """The history of an operation beyond a sequence number, oldest first."""
    return list(operation.events.filter(sequence__gt=sequence).order_by("sequence")[:most])


def knows_operation_key(tenant_id: int, operation_key: str) -> bool:
    """Is there an operation of the tenant under this key?"""
    return Operation.objects.filter(tenant_id=tenant_id, operation_key=operation_key).exists()


def knows_request_id(tenant_id: int, attempt_id: str, provider_request_id: str) -> bool:
    """Is this the provider request id that the attempt has already?"""
    found = Attempt.objects.filter(tenant_id=tenant_id, pk=attempt_id)
    return found.filter(provider_request_id=provider_request_id).exists()


def run_named(tenant_id: int, name: str) -> Run | None:
    return Run.objects.filter(tenant_id=tenant_id, name=name).first()


def newest_checkpoint(run: Run) -> RunCheckpoint | None:
    return run.checkpoints.order_by("-sequence").first()


def person_of_tenant(tenant_id: int, named: str) -> User | None:
    """The active person with this user name, else e-mail, who reviews for the tenant or owns an agent of it.

    Others stay unknown: an agent must not be able to ask who else has an account.
    """
    reviews = ReviewGroup.objects.filter(tenant_id=tenant_id, members=OuterRef("pk"))
    owns = Agent.objects.filter(tenant_id=tenant_id, owner=OuterRef("pk"))
    people = User.objects.filter(Exists(reviews) | Exists(owns), is_active=True)
    by_name = people.filter(username=named).first()
    if by_name is not None:
        return by_name
    by_email = list(people.filter(email__iexact=named)[:2])
    return by_email[0] if len(by_email) == 1 else None


def _direct(wanted: Wanted) -> Q:
    asked = {"operation_key": wanted.operation_key, "outcome": wanted.outcome, "run__name": wanted.run}
    return Q(**{name: value for name, value in asked.items() if value is not None})


def _of_an_attempt(wanted: Wanted) -> Q:
    asked = {"state": wanted.state, "tool": wanted.tool, "args_hash": wanted.args_hash}
    return Q(**{name: value for name, value in asked.items() if value is not None})
