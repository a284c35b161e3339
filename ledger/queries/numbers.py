"""The numbers a monitor asks for, over all tenants, by labels of closed lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, Q, QuerySet

from ledger.models import Attempt, Delivery, Pulse, Refusal, ReviewItem
from ledger.rules.states import State

_WAITING = (State.DISPATCHED, State.UNKNOWN, State.MANUAL_REVIEW)


@dataclass(frozen=True)
class Number:
    """One measure: `values` by the value of `label`."""

    name: str
    help: str
    label: str
    values: Mapping[str, float]


def numbers(now: datetime) -> Iterator[Number]:
    """Every number, read now. Ages are seconds."""
    attempts = Attempt.objects.all()
    yield Number("ledger_attempts", "Attempts by state.", "state", _counts(attempts, "state"))
    oldest = attempts.filter(state__in=_WAITING).values_list("state").annotate(Min("entered_state_at"))
    yield Number(
        "ledger_oldest_attempt_seconds",
        "Age in its state of the oldest attempt that is not settled.",
        "state",
        {state: (now - since).total_seconds() for state, since in oldest},
    )
    yield Number(
        "ledger_overdue_seconds",
        "How long what has waited longest is due and nobody has taken it up.",
        "what",
        {what: (now - since).total_seconds() for what, since in _overdue(now)},
    )
    confirmed = attempts.exclude(confirmed_by="")
    yield Number(
        "ledger_confirmed", "Confirmed attempts by whose evidence.", "by", _counts(confirmed, "confirmed_by")
    )
    open_items = ReviewItem.objects.filter(closed_at=None)
    yield Number("ledger_open_items", "Open review items by reason.", "reason", _counts(open_items, "reason"))
    refusals = _counts(Refusal.objects.all(), "reason")
    yield Number("ledger_refused_intents", "Refused intents by reason.", "reason", refusals)
    yield Number(
        "ledger_deliveries", "Deliveries by state.", "state", _counts(Delivery.objects.all(), "state")
    )
    pulses = {pulse.name: (now - pulse.at).total_seconds() for pulse in Pulse.objects.all()}
    yield Number(
        "ledger_pulse_age_seconds", "Since a part of the system last ran to its end.", "part", pulses
    )


def _overdue(now: datetime) -> Iterator[tuple[str, datetime]]:
    """What passes of recovery take up by themselves, since when it has been due."""
    attempts = Attempt.objects.all()
    waiting: Mapping[str, tuple[str, QuerySet[Attempt]]] = {
        "look_up": (
            "next_check_at",
            attempts.filter(Q(lookup_lease_until=None) | Q(lookup_lease_until__lte=now)),
        ),
        "send_lease": ("lease_until", attempts.filter(state=State.DISPATCHED)),
        "start": ("start_by", attempts),
    }
    for what, (column, rows) in waiting.items():
        since = rows.filter(**{f"{column}__lte": now}).aggregate(since=Min(column))["since"]
        if since is not None:
            yield what, since


def _counts(rows: QuerySet[Any], column: str) -> dict[str, float]:
    return dict(rows.order_by().values_list(column).annotate(Count("pk")))
