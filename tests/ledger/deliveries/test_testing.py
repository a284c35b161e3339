"""A test event: signed, one try, at once, in the destination's history, and no delivery knows of it."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.fernet import Fernet
from standardwebhooks import Webhook

from ledger.deliveries import send_test
from ledger.events import SYSTEM
from ledger.models import Delivery, DestinationChange
from ledger.transactions import durable
from tests.ledger.deliveries.helping import destination
from tests.support.cast import Cast
from tests.support.consumer import ConsumerProcess

pytestmark = pytest.mark.django_db(transaction=True)


def noted() -> DestinationChange:
    return DestinationChange.objects.get(kind="tested")


def test_it_is_signed_sent_at_once_and_noted(people: Cast, consumer: ConsumerProcess) -> None:
    books, secret = destination(people, consumer)
    result = send_test(destination=books, actor=SYSTEM)
    (received,) = consumer.received()
    assert Webhook(secret).verify(received.body, dict(received.headers)) == received.event
    assert received.event["type"] == "ledger.test.v1"
    assert (result.ended_as, result.status) == ("received", 200)
    assert noted().data["ended_as"] == "received"
    assert (noted().data["status"], noted().actor) == (200, SYSTEM.name)
    assert not Delivery.objects.exists()


@pytest.mark.parametrize(
    ("status", "ended_as"), [(302, "redirect"), (404, "refused"), (410, "gone"), (503, "unavailable")]
)
def test_what_failed_is_said_and_not_tried_again(
    people: Cast, consumer: ConsumerProcess, status: int, ended_as: str
) -> None:
    books, _ = destination(people, consumer)
    consumer.answer(status)
    result = send_test(destination=books, actor=SYSTEM)
    assert (result.ended_as, result.status, len(consumer.received())) == (ended_as, status, 1)
    books.refresh_from_db()
    assert (books.failures, books.paused_at) == (0, None)


def test_without_a_secret_nothing_is_sent(people: Cast, consumer: ConsumerProcess, settings: Any) -> None:
    books, _ = destination(people, consumer)
    settings.LEDGER_SEALING_KEYS = (Fernet.generate_key().decode(),)
    result = send_test(destination=books, actor=SYSTEM)
    assert result.ended_as == "not_sent"
    assert "LEDGER_SEALING_KEYS" in result.detail
    assert consumer.received() == []


def test_it_is_refused_inside_a_transaction(people: Cast, consumer: ConsumerProcess) -> None:
    books, _ = destination(people, consumer)
    with pytest.raises(RuntimeError):
        durable(lambda: send_test(destination=books, actor=SYSTEM))
