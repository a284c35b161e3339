"""Destinations and deliveries in any state, made by the real verbs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ledger import deliveries
from ledger.events import SYSTEM
from ledger.models import Attempt, Delivery, DeliveryTry, Destination, Tenant, User
from ledger.rules.deliveries import TryEnd
from ledger.transactions import database_clock, durable

ADDRESS = "https://books.example.org/hooks"


def destination(
    of: Tenant, name: str = "books", *, url: str = ADDRESS, ack: str = "response", **more: Any
) -> Destination:
    """A destination that hears of every settlement from now on."""
    return durable(
        lambda: deliveries.add_destination(tenant_id=of.pk, name=name, url=url, ack=ack, actor=SYSTEM, **more)
    )[0]


def delivery_of(attempt: Attempt) -> Delivery:
    """The newest delivery about its operation."""
    return Delivery.objects.filter(operation_id=attempt.operation_id).latest("pk")


def dead(attempt: Attempt, by: User, why: str = "they closed") -> Delivery:
    """Its newest delivery, dead-lettered by a person."""
    delivery_id = delivery_of(attempt).pk
    return durable(lambda: deliveries.give_up(delivery_id=delivery_id, by=by, why=why))


def acked(delivery: Delivery, key: Any, *, duplicate: bool = False) -> Delivery:
    """Acknowledged by its consumer's own call."""
    told = {"key": key, "delivery_id": delivery.pk, "webhook_id": delivery.webhook_id}
    return durable(lambda: deliveries.record_ack(**told, duplicate=duplicate)).delivery


def make_due(delivery: Delivery) -> None:
    """A test does not wait for the schedule."""
    Delivery.objects.filter(pk=delivery.pk).update(next_at=database_clock() - timedelta(seconds=1))


def tried(delivery: Delivery, **how: Any) -> DeliveryTry:
    """One try as a sender wrote it down; without an end its sender was lost."""
    number = delivery.sent_tries.count() + 1
    Delivery.objects.filter(pk=delivery.pk).update(tries=number, lease_epoch=number)
    return DeliveryTry.objects.create(
        tenant_id=delivery.tenant_id,
        delivery=delivery,
        number=number,
        lease_epoch=number,
        at=database_clock(),
        url=ADDRESS,
        **how,
    )


def answered(
    delivery: Delivery, status: int, ended_as: TryEnd, answer: bytes = b"", **how: Any
) -> DeliveryTry:
    """One try that was answered so."""
    Delivery.objects.filter(pk=delivery.pk).update(last_end=ended_as)
    end = {
        "ended_at": database_clock(),
        "sent_headers": {"webhook-id": delivery.webhook_id, "webhook-signature": "v1," + "A" * 44},
        "answer_headers": {"content-type": "text/html", "x-from": "them"},
        "answer_cut": False,
        "detail": "",
        "took_ms": 12,
    }
    return tried(delivery, status=status, ended_as=ended_as, answer_head=answer, **{**end, **how})
