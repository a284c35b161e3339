"""How long consumers take to acknowledge: quantiles over what was settled in a window."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Aggregate, Count, DurationField, ExpressionWrapper, F, Q, QuerySet

from ledger.models import Delivery
from ledger.models.ids import first_delivery_id

WINDOW = timedelta(hours=24)
LEAST_TIMES = 5
"""Fewer say nothing about a quantile."""

_CLOCKS_DIFFER_BY = timedelta(minutes=10)


class _Quantile(Aggregate):
    function = "percentile_cont"
    template = "%(function)s(%(quantile)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


_WAITED = ExpressionWrapper(F("acked_at") - F("created_at"), output_field=DurationField())

TIMES: dict[str, Aggregate] = {
    "acked": Count("pk", filter=Q(acked_at__isnull=False)),
    "p50": _Quantile(_WAITED, quantile=0.5),
    "p95": _Quantile(_WAITED, quantile=0.95),
}
"""For `aggregate` or `annotate`: what is not acknowledged has no time, and is counted elsewhere."""


def settled_since(since: datetime, among: QuerySet[Delivery] | None = None) -> QuerySet[Delivery]:
    """Deliveries of settlements since then: by their ids, which sort by creation, so that old ones are never
    read."""
    rows = Delivery.objects.all() if among is None else among
    return rows.filter(pk__gte=first_delivery_id(since - _CLOCKS_DIFFER_BY), created_at__gte=since)


def acknowledged_within_s(times: dict[str, Any]) -> dict[str, float]:
    """Quantile → seconds; nothing below the floor. `times`: what TIMES gave."""
    if times["acked"] < LEAST_TIMES:
        return {}
    return {"0.5": times["p50"].total_seconds(), "0.95": times["p95"].total_seconds()}
