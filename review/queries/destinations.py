"""Destinations: how well each is, what waits for it, how soon it acknowledges, and what was done to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Count, Min, Q

from ledger.models import Delivery, Destination, DestinationChange, DestinationSecret, User
from ledger.queries.delivery_times import TIMES, WINDOW, acknowledged_within_s, settled_since
from ledger.rules.deliveries import PauseReason
from ledger.rules.states import DeliveryState
from ledger.transactions import database_clock
from review.door import enter_row
from review.queries.cursor import page_at, place_of
from review.queries.deliveries import delivery_counts
from review.queries.delivery_values import DeliveryCounts, PressView
from review.queries.delivery_words import CHANGE_WORDS, END_WORDS, PAUSE_WORDS
from review.queries.destination_presses import presses_of
from review.queries.marked import Segment, marked_text
from review.queries.tenants import held_by, tenant_view, tenants_of, tenants_where
from review.queries.values import TenantView
from review.queries.words import plain
from review.rights import Rights

PAGE_SIZE = 100
NEWEST_CHANGES = 100
BY_NAME = ("name", "pk")
_LIST = "destinations"


class Health(StrEnum):
    """How a destination is."""

    WELL = "well"
    FAILING = "failing"
    RESTING = "resting"
    PAUSED = "paused"


@dataclass(frozen=True)
class AckTimes:
    """How long it took from settlement to acknowledgement, of what was settled in the last 24 hours and is
    acknowledged. Seconds; None: not enough data."""

    acked: int
    p50_s: float | None
    p95_s: float | None


@dataclass(frozen=True)
class DestinationRow:
    """One destination in a line."""

    destination_id: str
    tenant: TenantView
    name: str
    url: str
    health: Health
    health_words: str
    failures: int
    failing_since: datetime | None
    rests_until: datetime | None
    paused_at: datetime | None
    undelivered: int
    oldest_undelivered_at: datetime | None
    held: int
    dead_letters: int
    ack_times: AckTimes


@dataclass(frozen=True)
class DestinationsPage:
    """One page of 100 destinations, by name. `may_add_to`: where this person administers."""

    rows: tuple[DestinationRow, ...]
    tenants: tuple[TenantView, ...]
    may_add_to: tuple[TenantView, ...]
    counts: DeliveryCounts
    next_cursor: str | None
    as_of: datetime


@dataclass(frozen=True)
class SecretView:
    """One secret, which is never shown again. `retires_at` None: it signs until it is rotated."""

    created_at: datetime
    retires_at: datetime | None
    retired: bool


@dataclass(frozen=True)
class ChangeView:
    """One line of what was done to a destination."""

    at: datetime
    actor: str
    words: str
    why: tuple[Segment, ...]
    data: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class DestinationPage:
    """Everything about one destination. `newest_secret` names the secret that a rotation would replace."""

    row: DestinationRow
    ack: str
    ack_deadline_s: float
    most_at_once: int
    outcomes: tuple[str, ...]
    tool_globs: tuple[str, ...]
    created_at: datetime
    secrets: tuple[SecretView, ...]
    newest_secret: str
    changes: tuple[ChangeView, ...]
    changes_total: int
    presses: tuple[PressView, ...]
    rights: Rights
    as_of: datetime

    def press(self, kind: str) -> PressView | None:
        return next((press for press in self.presses if press.kind == kind), None)


def destinations_page(user: User, *, cursor: str = "") -> DestinationsPage:
    """Raises `BadFilter` for a cursor that is not of this list. Queries do not grow with rows."""
    tenants = tenants_of(user)
    ids = [tenant.id for tenant in tenants]
    now = database_clock()
    found = Destination.objects.filter(tenant_id__in=ids).select_related("tenant")
    page, next_cursor = page_at(place_of(_LIST, cursor, now), found, BY_NAME, PAGE_SIZE)
    return DestinationsPage(
        rows=_rows(page, now),
        tenants=tenants,
        may_add_to=_administered(user, tenants),
        counts=delivery_counts(ids),
        next_cursor=next_cursor,
        as_of=now,
    )


def paused_by_themselves(user: User) -> int:
    """How many destinations of this person's tenants are paused and no person paused them."""
    seen = held_by(user, "view_work").values("content_object_id")
    paused = Destination.objects.filter(tenant_id__in=seen, paused_at__isnull=False)
    return paused.exclude(paused_because=PauseReason.PERSON).count()


def may_add_to(user: User) -> tuple[TenantView, ...]:
    """The tenants this person may add a destination to."""
    return _administered(user, tenants_of(user))


def enter_destination(user: User, destination_id: str) -> tuple[Destination, Rights]:
    """The destination, if this person may see it. Raises `NotVisible`."""
    found = Destination.objects.select_related("tenant").filter(pk=destination_id).first()
    return enter_row(user, found, destination_id)


def destination_page(user: User, destination_id: str) -> DestinationPage:
    """Raises `NotVisible`."""
    destination, rights = enter_destination(user, destination_id)
    now = database_clock()
    (row,) = _rows([destination], now)
    secrets = list(DestinationSecret.objects.filter(destination=destination).defer("sealed").order_by("-pk"))
    changes = DestinationChange.objects.filter(destination=destination)
    return DestinationPage(
        row=row,
        ack=destination.ack,
        ack_deadline_s=destination.ack_deadline_s,
        most_at_once=destination.most_at_once,
        outcomes=tuple(destination.outcomes),
        tool_globs=tuple(destination.tool_globs),
        created_at=destination.created_at,
        secrets=tuple(_secret(secret, now) for secret in secrets),
        newest_secret=newest_secret(destination.pk),
        changes=tuple(_change(line) for line in changes.order_by("-at", "-pk")[:NEWEST_CHANGES]),
        changes_total=changes.count(),
        presses=presses_of(destination, rights, undelivered=row.undelivered, held=row.held),
        rights=rights,
        as_of=now,
    )


def newest_secret(destination_id: str) -> str:
    """Which secret a rotation replaces; empty where there is none."""
    last = DestinationSecret.objects.filter(destination_id=destination_id).order_by("-pk")
    return str(last.values_list("pk", flat=True).first() or "")


def _administered(user: User, tenants: tuple[TenantView, ...]) -> tuple[TenantView, ...]:
    administered = tenants_where(user, "administer")
    return tuple(tenant for tenant in tenants if tenant.id in administered)


def _rows(destinations: list[Destination], now: datetime) -> tuple[DestinationRow, ...]:
    """Three queries, however many there are."""
    ids = [destination.pk for destination in destinations]
    of_these = Delivery.objects.filter(destination_id__in=ids)
    waiting = of_these.filter(state__in=[DeliveryState.PENDING, DeliveryState.SENT])
    dead = of_these.filter(state=DeliveryState.DEAD_LETTERED)
    undelivered = _by_destination(
        waiting, n=Count("pk"), oldest=Min("created_at"), held=Count("pk", filter=Q(held_at__isnull=False))
    )
    dead_letters = _by_destination(dead, n=Count("pk"))
    times = _by_destination(settled_since(now - WINDOW, of_these), **TIMES)
    return tuple(
        _row(
            destination,
            undelivered.get(destination.pk, {}),
            dead_letters.get(destination.pk, {}).get("n", 0),
            _ack_times(times.get(destination.pk)),
            now,
        )
        for destination in destinations
    )


def _by_destination(rows: Any, **aggregates: Any) -> Mapping[str, dict[str, Any]]:
    grouped = rows.order_by().values("destination_id").annotate(**aggregates)
    return {row["destination_id"]: row for row in grouped}


def _row(
    destination: Destination, waiting: Mapping[str, Any], dead_letters: int, times: AckTimes, now: datetime
) -> DestinationRow:
    health = _health(destination, now)
    return DestinationRow(
        destination_id=destination.pk,
        tenant=tenant_view(destination.tenant),
        name=destination.name,
        url=destination.url,
        health=health,
        health_words=PAUSE_WORDS.get(destination.paused_because, "") if health is Health.PAUSED else "",
        failures=destination.failures,
        failing_since=destination.failing_since,
        rests_until=destination.rests_until if health is Health.RESTING else None,
        paused_at=destination.paused_at,
        undelivered=waiting.get("n", 0),
        oldest_undelivered_at=waiting.get("oldest"),
        held=waiting.get("held", 0),
        dead_letters=dead_letters,
        ack_times=times,
    )


def _health(destination: Destination, now: datetime) -> Health:
    if destination.paused_at is not None:
        return Health.PAUSED
    if destination.rests_until is not None and destination.rests_until > now:
        return Health.RESTING
    return Health.FAILING if destination.failures else Health.WELL


def _ack_times(times: dict[str, Any] | None) -> AckTimes:
    if times is None:
        return AckTimes(0, None, None)
    within = acknowledged_within_s(times)
    return AckTimes(times["acked"], within.get("0.5"), within.get("0.95"))


def _secret(secret: DestinationSecret, now: datetime) -> SecretView:
    retired = secret.retires_at is not None and secret.retires_at <= now
    return SecretView(secret.created_at, secret.retires_at, retired)


def _change(line: DestinationChange) -> ChangeView:
    return ChangeView(
        at=line.at,
        actor=line.actor,
        words=CHANGE_WORDS.get(line.kind, plain(line.kind)),
        why=marked_text(line.why),
        data=tuple(
            _fact(name, value) for name, value in sorted(line.data.items()) if value not in (None, "")
        ),
    )


def _fact(name: str, value: object) -> tuple[str, str]:
    return plain(name), END_WORDS.get(str(value), str(value))
