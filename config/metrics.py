"""`/metrics`: Prometheus text of the ledger's numbers, read at each scrape."""

import hmac
from collections.abc import Iterable

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from ledger.queries.numbers import numbers
from ledger.transactions import database_clock


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Open in development; elsewhere to whoever bears LEDGER_METRICS_TOKEN."""
    if not _may_read(request):
        return HttpResponse("Send Authorization: Bearer and LEDGER_METRICS_TOKEN.\n", "text/plain", 401)
    registry = CollectorRegistry()
    try:
        registry.register(_Numbers())
        return HttpResponse(generate_latest(registry), CONTENT_TYPE_LATEST)
    except DatabaseError:
        return HttpResponse("The database does not answer.\n", "text/plain", 503)


class _Numbers(Collector):
    def collect(self) -> Iterable[Metric]:
        for number in numbers(database_clock()):
            family = GaugeMetricFamily(number.name, number.help, labels=[number.label])
            for value, amount in sorted(number.values.items()):
                family.add_metric([value], amount)
            yield family


def _may_read(request: HttpRequest) -> bool:
    token = settings.LEDGER_METRICS_TOKEN
    if not token:
        return bool(settings.DEVELOPMENT)
    return hmac.compare_digest(request.headers.get("Authorization", ""), f"Bearer {token}")
