"""What look-ups say of a provider itself: unreachable since when, when it is probed, and back again."""

from __future__ import annotations

import logging
import random
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

from django.db import OperationalError
from django.db.models import F, Q, QuerySet

from ledger.models import Attempt, Provider
from ledger.reconciliation.claims import AWAY_AFTER, lanes_of
from ledger.rules.backoff import probe_backoff_s
from ledger.rules.looked_up import ANSWERED, LookedUpKind
from ledger.rules.states import State
from ledger.transactions import Busy, database_clock, durable

logger = logging.getLogger(__name__)

STEP, MOST_STEPS = 500, 20


def note_answer(provider: Provider, kind: LookedUpKind, *, refused_credential: str = "") -> None:
    """Keep the provider's health; its first readable answer makes all its attempts due. An answer to a
    credential that is not the right one is no readable one, and names what somebody has to mend."""
    if durable(lambda: _note(provider, kind, refused_credential)):
        _make_all_due(provider)


def _note(provider: Provider, kind: LookedUpKind, refused: str) -> bool:
    """Did it come back?"""
    row, now = Provider.objects.filter(pk=provider.pk), database_clock()
    if refused:
        row.filter(credential_refused_since=None).update(credential_refused_since=now)
        row.exclude(refused_credential=refused).update(refused_credential=refused[:100])
    if kind is LookedUpKind.UNAVAILABLE or refused:
        row.filter(unavailable_since=None).update(unavailable_since=now)
        roll = random.random()  # noqa: S311
        wait_s = probe_backoff_s(provider.failures, roll=roll)
        row.update(failures=F("failures") + 1, probe_at=now + timedelta(seconds=wait_s))
    elif kind in ANSWERED:
        healthy = {"unavailable_since": None, "probe_at": None, "failures": 0, "last_answer_at": now}
        mended = {"refused_credential": "", "credential_refused_since": None}
        was_away = Q(failures__gte=AWAY_AFTER) | Q(credential_refused_since__isnull=False)
        came_back = row.filter(was_away).update(**healthy, **mended)
        if not came_back:
            row.update(**healthy)
        return bool(came_back)
    return False


def _make_all_due(provider: Provider) -> None:
    """What is due already keeps its order. Its health is kept before: what fails here, or is beyond the
    limit, waits for its own time, some minutes at most, and nobody's answer is lost over it."""
    now = database_clock()
    try:
        waiting = Attempt.objects.filter(tenant_id=provider.tenant_id, state=State.UNKNOWN)
        asked = [lane.attempts for lane in lanes_of(waiting) if lane.provider == provider.name]
        later = waiting.filter(reduce(or_, asked), next_check_at__gt=now) if asked else waiting.none()
        for _ in range(MOST_STEPS):
            if durable(lambda: _make_due(later, now)) < STEP:
                break
    except (Busy, OperationalError):
        logger.exception("%s is back, and not all of its attempts could be made due", provider.name)


def _make_due(later: QuerySet[Attempt], now: datetime) -> int:
    """The soonest of them that nobody works on; how many."""
    free = later.select_for_update(skip_locked=True, no_key=True).order_by("next_check_at")
    ids = list(free.values_list("pk", flat=True)[:STEP])
    return Attempt.objects.filter(pk__in=ids).update(next_check_at=now)
