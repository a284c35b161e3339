"""What look-ups say of a provider itself: unreachable since when, when it is probed, and back again."""

from __future__ import annotations

import random
from datetime import timedelta
from functools import reduce
from operator import or_

from django.db.models import F, Q

from ledger.models import Attempt, Provider
from ledger.reconciliation.claims import AWAY_AFTER, lanes_of
from ledger.rules.backoff import probe_backoff_s
from ledger.rules.looked_up import ANSWERED, LookedUpKind
from ledger.rules.states import State
from ledger.transactions import database_clock, durable


def note_answer(provider: Provider, kind: LookedUpKind, *, refused_credential: str = "") -> None:
    """Keep the provider's health; its first readable answer makes all its attempts due. An answer to a
    credential that is not the right one is no readable one, and names what somebody has to mend."""
    durable(lambda: _note(provider, kind, refused_credential))


def _note(provider: Provider, kind: LookedUpKind, refused: str) -> None:
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
        if came_back:
            _make_all_due(provider)
        else:
            row.update(**healthy)


def _make_all_due(provider: Provider) -> None:
    waiting = Attempt.objects.filter(tenant_id=provider.tenant_id, state=State.UNKNOWN)
    asked = [lane.attempts for lane in lanes_of(waiting) if lane.provider == provider.name]
    if asked:
        waiting.filter(reduce(or_, asked, Q())).update(next_check_at=database_clock())
