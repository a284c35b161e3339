"""The deliveries of one person's tenants, newest first."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from ledger.models import Delivery, Destination, User
from ledger.rules.states import DeliveryState
from ledger.transactions import database_clock
from review.queries.cursor import page_at, place_of
from review.queries.delivery_rows import RELATED, delivery_row, destination_name
from review.queries.delivery_values import (
    DeliveriesPage,
    DeliveryCounts,
    DeliveryFilters,
    DestinationName,
)
from review.queries.delivery_words import END_WORDS, NEVER_TRIED
from review.queries.tenants import tenants_of
from review.queries.urgency import rules_of_pairs
from review.queries.values import BadFilter

PAGE_SIZE = 50
MOST_TO_CHOOSE = 200
NEWEST_FIRST = ("-pk",)
_LIST = "deliveries"


def deliveries_page(user: User, filters: DeliveryFilters) -> DeliveriesPage:
    """One page of 50. Raises `BadFilter` for a cursor that is not of this list. Queries do not grow with
    rows."""
    tenants = tenants_of(user)
    ids = [tenant.id for tenant in tenants]
    now = database_clock()
    place = place_of(_LIST, filters.cursor, now)
    page, next_cursor = page_at(place, _wanted(ids, filters), NEWEST_FIRST, PAGE_SIZE)
    rules = rules_of_pairs({_rule_key(delivery) for delivery in page}).rules
    return DeliveriesPage(
        rows=tuple(delivery_row(delivery, rules.get(_rule_key(delivery)), now) for delivery in page),
        tenants=tenants,
        destinations=destinations_to_choose(ids),
        counts=delivery_counts(ids),
        next_cursor=next_cursor,
        as_of=now,
    )


def destinations_to_choose(tenant_ids: list[int]) -> tuple[DestinationName, ...]:
    """By name, the first 200."""
    found = Destination.objects.filter(tenant_id__in=tenant_ids).select_related("tenant")
    return tuple(destination_name(row) for row in found.order_by("name", "pk")[:MOST_TO_CHOOSE])


def delivery_counts(tenant_ids: list[int]) -> DeliveryCounts:
    """Two queries."""
    paused = Destination.objects.filter(tenant_id__in=tenant_ids).exclude(paused_at=None)
    return DeliveryCounts(dead_letters=dead_letters_in(tenant_ids).count(), paused=paused.count())


def dead_letters_in(tenant_ids: list[int]) -> QuerySet[Delivery]:
    return Delivery.objects.filter(tenant_id__in=tenant_ids, state=DeliveryState.DEAD_LETTERED)


def known_error(value: str) -> str:
    """The class of error a filter names. Raises `BadFilter` for one nobody knows."""
    if value not in END_WORDS:
        raise BadFilter("error", f"There is no class of error “{value}”.")
    return value


def ended_with(errors: tuple[str, ...]) -> Q:
    """Deliveries whose last try ended so."""
    return Q(last_end__in=["" if error == NEVER_TRIED else error for error in errors])


def _wanted(tenant_ids: list[int], filters: DeliveryFilters) -> QuerySet[Delivery]:
    wanted = Q(tenant_id__in=tenant_ids)
    if filters.states:
        wanted &= Q(state__in=filters.states)
    if filters.destination:
        wanted &= Q(destination_id=filters.destination)
    if filters.errors:
        wanted &= ended_with(filters.errors)
    if filters.tenants:
        wanted &= Q(tenant__slug__in=filters.tenants)
    if filters.text:
        wanted &= Q(operation__operation_key__icontains=filters.text)
    rows = Delivery.objects.filter(wanted).select_related(*RELATED)
    return rows.defer("body", "settlement__attempt__args")


def _rule_key(delivery: Delivery) -> tuple[int, str]:
    attempt = delivery.settlement.attempt
    return attempt.policy_id, attempt.tool
