"""What time alone brings: leases that ran out, approvals that expired or whose ground has changed, work its
agent never came for."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db.models import Exists, OuterRef

from ledger.lifecycle import (
    end_approval,
    end_changed_votes,
    end_send_lease,
    end_wait_for_agent,
    escalate_before_key_window_closes,
    has_changed_votes,
    join_late,
)
from ledger.models import Approval, Attempt, ReviewItem, Vote
from ledger.pulses import beat
from ledger.queries.parked import operations_with_parked_facts
from ledger.reconciliation.apart import apart, unless_locked
from ledger.rules.states import State
from ledger.transactions import database_clock, durable

BATCH = 200
ASKED_AGAIN = 50
"""Of so many attempts with votes a pass asks whether they still stand; leave asks it of each, anyway."""


@dataclass(frozen=True)
class SweepReport:
    """How many of each one pass ended; `joined`: operations whose parked facts it applied; `voided`: attempts
    whose votes no longer stood; `escalated`: items whose key window closes."""

    leases: int
    approvals: int
    not_started: int
    joined: int
    voided: int
    escalated: int


def sweep_once(*, at_most: int = BATCH) -> SweepReport:
    """End what is over by the database's clock. Each in a transaction of its own that looks again; one that
    is locked, or fails, waits for the next pass and keeps no other waiting."""
    now = database_clock()
    report = SweepReport(
        leases=_each(_leases_over(now, at_most), lambda pk: end_send_lease(attempt_id=pk)),
        approvals=_each(_approvals_over(now, at_most), lambda pk: end_approval(attempt_id=pk)),
        not_started=_each(_never_started(now, at_most), lambda pk: end_wait_for_agent(attempt_id=pk)),
        joined=sum(map(_join, operations_with_parked_facts(at_most))),
        escalated=_each(
            _windows_closing(now, at_most), lambda pk: escalate_before_key_window_closes(attempt_id=pk)
        ),
        voided=_each(_votes_changed(now), lambda pk: end_changed_votes(attempt_id=pk)),
    )
    beat("sweep")
    return report


def _each(attempt_ids: list[str], end: Callable[[str], bool]) -> int:
    return sum(unless_locked(pk, partial(end, pk)) for pk in attempt_ids)


def _join(operation_id: str) -> bool:
    return bool(apart(operation_id, lambda: durable(lambda: join_late(operation_id=operation_id))))


def _leases_over(now: datetime, at_most: int) -> list[str]:
    over = Attempt.objects.filter(state=State.DISPATCHED, lease_until__lte=now)
    return list(over.order_by("lease_until").values_list("pk", flat=True)[:at_most])


def _approvals_over(now: datetime, at_most: int) -> list[str]:
    over = Approval.objects.filter(used_at=None, voided_at=None, expires_at__lte=now)
    return list(over.order_by("expires_at").values_list("attempt_id", flat=True)[:at_most])


def _votes_changed(now: datetime) -> list[str]:
    """Attempts whose votes or approval no longer stand, among some of those that have any."""
    waiting = Approval.objects.filter(used_at=None, voided_at=None).values_list("attempt_id")
    open_votes = Vote.objects.filter(approval=None, voided_at=None, expires_at__gt=now)
    voted = [pk for (pk,) in waiting.union(open_votes.values_list("attempt_id"))]
    some = random.sample(voted, min(len(voted), ASKED_AGAIN))
    asked = Attempt.objects.filter(pk__in=some).select_related(
        "operation", "policy", "agent__owner", "agent__tenant"
    )
    return [attempt.pk for attempt in asked if has_changed_votes(attempt)]


def _never_started(now: datetime, at_most: int) -> list[str]:
    """Those that are approved wait for the end of that; among these they would only stand before others."""
    approved = Approval.objects.filter(attempt=OuterRef("pk"), used_at=None, voided_at=None)
    over = Attempt.objects.filter(~Exists(approved), start_by__lte=now)
    return list(over.order_by("start_by").values_list("pk", flat=True)[:at_most])


def _windows_closing(now: datetime, at_most: int) -> list[str]:
    due = ReviewItem.objects.filter(closed_at=None, escalate_at__lte=now)
    return list(due.order_by("escalate_at").values_list("attempt_id", flat=True)[:at_most])
