"""The numbers of deliveries: how old, how many gave up, how soon they are acknowledged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from django.db.models import Count, Min

from ledger.models import Delivery, DeliveryAck, Destination
from ledger.queries.delivery_times import TIMES, WINDOW, acknowledged_within_s, settled_since
from ledger.queries.measures import Number, Scope, counts
from ledger.rules.states import DeliveryState

MOST_DESTINATIONS = 50
OTHER = "other"


def delivery_numbers(now: datetime, scope: Scope) -> Iterator[Number]:
    """Ages are seconds. A destination is a label only while something waits for it, and only the fifty that
    wait longest are."""
    deliveries = scope.of(Delivery)
    yield Number("ledger_deliveries", "Deliveries by state.", "state", counts(deliveries, "state"))
    yield from _undelivered(now, scope)
    dead = deliveries.filter(state=DeliveryState.DEAD_LETTERED)
    yield Number(
        "ledger_dead_letters",
        "Deliveries nobody tries any more, by reason.",
        "reason",
        counts(dead, "dead_reason"),
    )
    times = settled_since(now - WINDOW, deliveries).aggregate(**TIMES)
    yield Number(
        "ledger_acknowledged_seconds",
        "From settlement to acknowledgement, of what was settled in the last 24 hours.",
        "quantile",
        acknowledged_within_s(times),
    )
    duplicates = scope.of(DeliveryAck).filter(duplicate=True).count()
    yield Number(
        "ledger_duplicates_seen",
        "Acknowledgements that said: this had come before.",
        "by",
        {"consumer": duplicates},
    )
    paused = scope.of(Destination).exclude(paused_at=None)
    yield Number(
        "ledger_paused_destinations",
        "Destinations nothing is sent to, by reason.",
        "reason",
        counts(paused, "paused_because"),
    )


def _undelivered(now: datetime, scope: Scope) -> Iterator[Number]:
    waiting = scope.of(Delivery).filter(state__in=[DeliveryState.PENDING, DeliveryState.SENT])
    grouped = waiting.order_by().values_list("destination_id")
    rows = grouped.annotate(oldest=Min("created_at"), number=Count("pk")).order_by("oldest", "destination_id")
    ages: dict[str, float] = {}
    numbers: dict[str, float] = {}
    for place, (destination_id, oldest, number) in enumerate(rows):
        label = destination_id if place < MOST_DESTINATIONS else OTHER
        ages.setdefault(label, (now - oldest).total_seconds())
        numbers[label] = numbers.get(label, 0) + number
    yield _by_destination("ledger_undelivered", "Deliveries that wait, by destination.", numbers)
    yield _by_destination(
        "ledger_oldest_undelivered_seconds", "Age of the oldest delivery that waits, by destination.", ages
    )


def _by_destination(name: str, words: str, values: Mapping[str, float]) -> Number:
    return Number(name, f"{words} The fifty that wait longest; the others as {OTHER}.", "destination", values)
