"""Claim due look-ups: a short transaction, a lease with an epoch, the work outside it.

What is due is claimed provider by provider, so that a long queue for one of them, or one that is not there,
costs the attempts of the others nothing. A provider that was not there is asked by one at a time, and not
before its next probe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import F, Q, QuerySet

from ledger.models import Attempt, PolicySnapshot, Provider
from ledger.policies import policy_of
from ledger.rules.states import OPEN_QUESTION
from ledger.transactions import database_clock, durable

LOOK_UP_LEASE = timedelta(seconds=30)
"""Longer than the guarded client's total of 20 s, so that only a dead or stopped reconciler loses it."""

AWAY_AFTER = 2
"""So many answers in a row that nobody could read mean that the provider is not there; one may be the
attempt's own fault."""


@dataclass(frozen=True)
class Claim:
    """One attempt to ask about, and who is asked, as they are stored now (None: nobody has added it); an
    answer counts only under this epoch, and for no later than `at`."""

    attempt: Attempt
    epoch: int
    provider: Provider | None
    at: datetime

    @property
    def attempt_id(self) -> str:
        return str(self.attempt.pk)


@dataclass(frozen=True)
class Lane:
    """What is asked of one tenant's provider: which tools, by which of its policies."""

    tenant_id: int
    provider: str | None
    work: tuple[tuple[int, str], ...]

    @property
    def attempts(self) -> Q:
        tools = (Q(policy_id=policy_id, tool=tool) for policy_id, tool in self.work)
        return Q(tenant_id=self.tenant_id) & reduce(or_, tools)


def due_lanes() -> list[Lane]:
    """The lanes in which something is due that nobody asks about."""
    return lanes_of(_due(database_clock()))


def lanes_of(attempts: QuerySet[Attempt]) -> list[Lane]:
    """These attempts by who is asked about them."""
    kinds = list(attempts.order_by().values_list("tenant_id", "policy_id", "tool").distinct())
    snapshots = PolicySnapshot.objects.in_bulk({policy_id for _, policy_id, _ in kinds})
    found: dict[tuple[int, str | None], list[tuple[int, str]]] = {}
    for tenant_id, policy_id, tool in kinds:
        asked = (tenant_id, _asked_about(snapshots, policy_id, tool))
        found.setdefault(asked, []).append((policy_id, tool))
    return [Lane(tenant_id, provider, tuple(work)) for (tenant_id, provider), work in found.items()]


def claim_in(lane: Lane, *, at_most: int = 1) -> list[Claim]:
    """Take the look-up lease of the attempts whose turn it is; of none where nothing is due, or the provider
    is not to be asked now."""
    return durable(lambda: _claim(lane, at_most))


def _claim(lane: Lane, at_most: int) -> list[Claim]:
    now, provider = database_clock(), provider_named(lane.tenant_id, lane.provider)
    is_away = provider is not None and provider.failures >= AWAY_AFTER
    picked = _next_of(_due(now).filter(lane.attempts), 1 if is_away else at_most)
    if not picked or (is_away and not _may_probe(lane, now)):
        return []
    Attempt.objects.filter(pk__in=[attempt.pk for attempt in picked]).update(
        lookup_lease_until=now + LOOK_UP_LEASE, lookup_epoch=F("lookup_epoch") + 1
    )
    return [Claim(attempt, attempt.lookup_epoch + 1, provider, now) for attempt in picked]


def provider_named(tenant_id: int, name: str | None) -> Provider | None:
    """How a tenant's provider is asked; None where nobody has added it."""
    return Provider.objects.filter(tenant_id=tenant_id, name=name).first() if name else None


def _next_of(due: QuerySet[Attempt], at_most: int) -> list[Attempt]:
    """One whose look-up keeps failing comes after those that were not tried: it may be the only one. One that
    somebody works on is left out."""
    whole = due.select_related("operation").prefetch_related("policy").defer("args")
    queue = whole.select_for_update(skip_locked=True, of=("self", "operation"))
    return list(queue.order_by("lookup_failures", "next_check_at")[:at_most])


def _may_probe(lane: Lane, now: datetime) -> bool:
    """A provider that was not there is probed by one at a time; who dies over it keeps nobody for long."""
    away = Provider.objects.filter(tenant_id=lane.tenant_id, name=lane.provider)
    may = away.filter(Q(probe_at=None) | Q(probe_at__lte=now), failures__gte=AWAY_AFTER)
    return bool(may.update(probe_at=now + LOOK_UP_LEASE))


def _due(now: datetime) -> QuerySet[Attempt]:
    free = Q(lookup_lease_until=None) | Q(lookup_lease_until__lte=now)
    return Attempt.objects.filter(free, next_check_at__lte=now, state__in=sorted(OPEN_QUESTION))


def _asked_about(snapshots: Mapping[Any, PolicySnapshot], policy_id: int, tool: str) -> str | None:
    rule = policy_of(snapshots[policy_id]).rule_for(tool)
    return rule.provider if rule else None
