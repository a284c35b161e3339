"""Dead letters by destination and class of error, and what a plan would freeze of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Min, QuerySet

from ledger.deliveries.redelivering import MOST_IN_A_PLAN
from ledger.models import Delivery, Destination, User
from ledger.rules.states import DeliveryState
from ledger.transactions import database_clock
from review.queries.deliveries import dead_letters_in, delivery_counts, ended_with, known_error
from review.queries.delivery_rows import destination_name
from review.queries.delivery_values import DeliveryCounts, DestinationName
from review.queries.delivery_words import END_WORDS, NEVER_TRIED, end_words
from review.queries.destinations import enter_destination
from review.queries.redeliveries import PlanRow, newest_plans
from review.queries.tenants import tenants_of, tenants_where
from review.queries.values import BadFilter, TenantView
from review.rights import Rights

MOST_GROUPS = 500


@dataclass(frozen=True)
class DeadFilter:
    """Which dead letters: of one destination, whose last try ended so (empty: however it ended)."""

    destination: str
    error: str = ""


@dataclass(frozen=True)
class DeadGroup:
    """Dead letters of one destination and class of error, and when the first and the last died."""

    destination: DestinationName
    error: str
    words: str
    count: int
    first_at: datetime
    last_at: datetime
    may_redeliver: bool


@dataclass(frozen=True)
class DeadLettersPage:
    """Every group, the biggest first; `more`: there are others."""

    groups: tuple[DeadGroup, ...]
    more: bool
    plans: tuple[PlanRow, ...]
    tenants: tuple[TenantView, ...]
    counts: DeliveryCounts
    as_of: datetime


@dataclass(frozen=True)
class ToFreeze:
    """What a plan would freeze, counted before anything is: `count` of the `total`, the oldest first."""

    destination: DestinationName
    words: str
    total: int
    count: int
    first_at: datetime | None
    last_at: datetime | None
    rights: Rights
    as_of: datetime


def dead_letters_page(user: User) -> DeadLettersPage:
    """Queries do not grow with rows."""
    tenants = tenants_of(user)
    ids = [tenant.id for tenant in tenants]
    grouped = dead_letters_in(ids).values("destination_id", "last_end")
    counted = grouped.annotate(count=Count("pk"), first=Min("dead_at"), last=Max("dead_at"))
    rows = list(counted.order_by("-count", "destination_id", "last_end")[: MOST_GROUPS + 1])
    deciding = tenants_where(user, "decide_work")
    names = _names({row["destination_id"] for row in rows})
    return DeadLettersPage(
        groups=tuple(
            DeadGroup(
                destination=names[row["destination_id"]],
                error=row["last_end"] or NEVER_TRIED,
                words=end_words(row["last_end"]),
                count=row["count"],
                first_at=row["first"],
                last_at=row["last"],
                may_redeliver=names[row["destination_id"]].tenant.id in deciding,
            )
            for row in rows[:MOST_GROUPS]
        ),
        more=len(rows) > MOST_GROUPS,
        plans=newest_plans(ids),
        tenants=tenants,
        counts=delivery_counts(ids),
        as_of=database_clock(),
    )


def enter_dead_letters(user: User, chosen: DeadFilter) -> tuple[Destination, Rights]:
    """The destination they were for. Raises `BadFilter` for an empty filter or one nobody knows, and
    `NotVisible`."""
    if not chosen.destination:
        raise BadFilter("destination", "Say which dead letters: an empty filter is never redelivered.")
    if chosen.error:
        known_error(chosen.error)
    return enter_destination(user, chosen.destination)


def to_freeze(user: User, chosen: DeadFilter) -> ToFreeze:
    """What would be frozen now. Raises as `enter_dead_letters`."""
    destination, rights = enter_dead_letters(user, chosen)
    now = database_clock()
    counted = _chosen(chosen, now).aggregate(total=Count("pk"), first=Min("dead_at"), last=Max("dead_at"))
    return ToFreeze(
        destination=destination_name(destination),
        words=END_WORDS[chosen.error] if chosen.error else "whatever the class of error",
        total=counted["total"],
        count=min(counted["total"], MOST_IN_A_PLAN),
        first_at=counted["first"],
        last_at=counted["last"],
        rights=rights,
        as_of=now,
    )


def frozen_ids(chosen: DeadFilter, until: datetime) -> list[str]:
    """The oldest of them, at most as many as a plan takes."""
    oldest = _chosen(chosen, until).order_by("dead_at", "pk")
    return list(oldest.values_list("pk", flat=True)[:MOST_IN_A_PLAN])


def _chosen(chosen: DeadFilter, until: datetime) -> QuerySet[Delivery]:
    rows = Delivery.objects.filter(
        destination_id=chosen.destination, state=DeliveryState.DEAD_LETTERED, dead_at__lte=until
    )
    return rows.filter(ended_with((chosen.error,))) if chosen.error else rows


def _names(destination_ids: set[str]) -> dict[str, DestinationName]:
    found = Destination.objects.filter(pk__in=destination_ids).select_related("tenant")
    return {row.pk: destination_name(row) for row in found}
