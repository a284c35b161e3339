"""A destination's health: failures in a row, a rest, and a pause where nothing but failures came for days."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from django.db.models import Case, F, Q, Value, When

from ledger.deliveries.destinations import WELL, pause
from ledger.events import SENDER
from ledger.models import Destination
from ledger.rules.deliveries import (
    NOT_SENT_WAIT_S,
    PauseReason,
    TryEnd,
    counts_against_destination,
    has_only_failed,
    rest_s,
)


def note(destination: Destination, end: TryEnd, *, now: datetime) -> None:
    """Keep what this end says of the destination. One that is well costs no write."""
    if end is TryEnd.RECEIVED:
        _note_well(destination)
    elif counts_against_destination(end):
        _note_failure(destination, end, now)
    else:
        _leave_alone(destination, now)


def _note_well(destination: Destination) -> None:
    if destination.failures:
        Destination.objects.filter(pk=destination.pk).update(**WELL)
        destination.failures = 0


def _leave_alone(destination: Destination, now: datetime) -> None:
    """The fault is ours and says nothing of it; but while it lasts, each look would only add a try."""
    until = now + timedelta(seconds=NOT_SENT_WAIT_S / 2)
    row = Destination.objects.filter(Q(rests_until=None) | Q(rests_until__lt=until), pk=destination.pk)
    row.update(rests_until=until)


def _note_failure(destination: Destination, end: TryEnd, now: datetime) -> None:
    row = Destination.objects.filter(pk=destination.pk)
    since = Case(When(failing_since=None, then=Value(now)), default=F("failing_since"))
    row.update(failures=F("failures") + 1, failing_since=since)
    destination.refresh_from_db(fields=["failures", "failing_since", "paused_at"])
    rest = rest_s(destination.failures, roll=random.random())  # noqa: S311
    if rest:
        row.update(rests_until=now + timedelta(seconds=rest))
    if end is TryEnd.GONE:
        pause(destination, PauseReason.GONE, actor=SENDER, now=now)
    elif has_only_failed(destination.failing_since, now):
        pause(destination, PauseReason.ONLY_FAILURES, actor=SENDER, now=now)
