"""Claim due look-ups: a short transaction, a lease with an epoch, the work outside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F, Q

from ledger.models import Attempt
from ledger.rules.states import OPEN_QUESTION
from ledger.transactions import database_clock, durable

LOOK_UP_LEASE = timedelta(seconds=30)
"""Longer than the guarded client's total of 20 s, so that only a dead or stopped reconciler loses it."""


@dataclass(frozen=True)
class Claim:
    """One attempt to ask about; an answer counts only under this epoch."""

    attempt_id: str
    epoch: int


def claim_due(*, at_most: int) -> list[Claim]:
    """Take the look-up lease of due attempts that nobody holds or works on, soonest first."""
    return durable(lambda: _claim(at_most))


def _claim(at_most: int) -> list[Claim]:
    now = database_clock()
    free = Q(lookup_lease_until=None) | Q(lookup_lease_until__lte=now)
    due = Attempt.objects.filter(free, next_check_at__lte=now, state__in=sorted(OPEN_QUESTION))
    free_too = due.select_related("operation").only("lookup_epoch", "operation__id")
    locked = free_too.select_for_update(skip_locked=True, of=("self", "operation"))
    picked = list(locked.order_by("next_check_at")[:at_most])
    Attempt.objects.filter(pk__in=[attempt.pk for attempt in picked]).update(
        lookup_lease_until=now + LOOK_UP_LEASE, lookup_epoch=F("lookup_epoch") + 1
    )
    return [Claim(attempt.pk, attempt.lookup_epoch + 1) for attempt in picked]
