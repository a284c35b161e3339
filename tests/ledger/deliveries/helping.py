"""The words of these tests: a destination, and time that has passed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ledger.deliveries import add_destination
from ledger.events import SYSTEM
from ledger.models import Delivery, Destination
from ledger.transactions import database_clock, durable
from tests.support.cast import Cast
from tests.support.consumer import ConsumerProcess

HOUR_AGO = timedelta(hours=1)


def destination(
    people: Cast,
    consumer: ConsumerProcess | str,
    *,
    ack: str = "response",
    name: str = "books",
    **columns: Any,
) -> tuple[Destination, str]:
    """Added by the real verb, with other limits than it gives; its secret."""
    url = consumer if isinstance(consumer, str) else consumer.url
    added, secret = durable(
        lambda: add_destination(tenant_id=people.tenant.pk, name=name, url=url, ack=ack, actor=SYSTEM)
    )
    if columns:
        Destination.objects.filter(pk=added.pk).update(**columns)
        added.refresh_from_db()
    return added, secret


def make_due(*deliveries: Delivery) -> None:
    """A test does not wait for the schedule; without any named, all that wait are due."""
    waiting = Delivery.objects.filter(next_at__isnull=False)
    if deliveries:
        waiting = waiting.filter(pk__in=[delivery.pk for delivery in deliveries])
    waiting.update(next_at=database_clock() - timedelta(seconds=1))


def rested(**columns: Any) -> None:
    """No destination rests any more."""
    Destination.objects.update(rests_until=None, **columns)


def lease_over(*deliveries: Delivery) -> None:
    """Whoever sent these is not heard from any more."""
    Delivery.objects.filter(pk__in=[delivery.pk for delivery in deliveries]).update(
        lease_until=database_clock() - timedelta(seconds=1)
    )
