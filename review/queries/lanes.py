"""The two lanes of an operation: how often a tool was run for it, and how its results reached whom."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Count, Sum, Window

from ledger.models import Attempt, Delivery, Operation
from review.queries.delivery_rows import lane_row
from review.queries.lane_values import Lanes

MOST_IN_A_LANE = 100


def lanes_of(operation: Operation, attempts: Iterable[Attempt], now: datetime) -> Lanes:
    """One query, and none while it is not settled. The counts are of all, whatever is listed."""
    found = _deliveries(operation) if operation.settlements_count else []
    return Lanes(
        execution_attempts=sum(1 for attempt in attempts if attempt.was_sent),
        delivery_tries=vars(found[0])["every_try"] if found else 0,
        deliveries=vars(found[0])["number"] if found else 0,
        rows=tuple(lane_row(delivery, now) for delivery in found),
    )


def _deliveries(operation: Operation) -> list[Delivery]:
    rows = Delivery.objects.filter(operation=operation).select_related("destination", "settlement")
    counted = rows.annotate(every_try=Window(Sum("tries")), number=Window(Count("pk")))
    return list(counted.defer("body").order_by("-settlement__number", "destination__name")[:MOST_IN_A_LANE])
