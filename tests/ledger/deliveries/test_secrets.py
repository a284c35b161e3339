"""Secrets: sealed at rest, shown once, rotated with overlap; where none can sign nothing is sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from standardwebhooks import Webhook, WebhookVerificationError

from ledger.deliveries import deliver_once, rotate_secret
from ledger.events import SYSTEM
from ledger.models import Delivery, Destination, DestinationChange, DestinationSecret, Event
from ledger.rules.webhooks import secret_bytes
from ledger.transactions import database_clock, durable
from tests.ledger.deliveries.helping import all_is_well, destination, make_due, rested, told
from tests.support.cast import Cast
from tests.support.consumer import ConsumerProcess, Received
from tests.support.races import at_once

pytestmark = pytest.mark.django_db(transaction=True)

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))
DAY = timedelta(days=1)


def verifies(secret: str, received: Received) -> bool:
    try:
        Webhook(secret).verify(received.body, dict(received.headers))
    except WebhookVerificationError:
        return False
    return True


def rotated(books: Destination, overlap: timedelta = DAY) -> str:
    return durable(lambda: rotate_secret(books, actor=SYSTEM, now=database_clock(), overlap=overlap))


def sent(people: Cast, consumer: ConsumerProcess) -> Received:
    consumer.forget()
    told(people)
    make_due()
    rested()
    deliver_once()
    return consumer.received()[-1]


def test_it_is_stored_sealed_and_nowhere_in_the_open(people: Cast, consumer: ConsumerProcess) -> None:
    books, secret = destination(people, consumer)
    sent(people, consumer)
    kept = DestinationSecret.objects.get()
    raw = secret_bytes(secret)
    assert len(raw) == 32
    assert raw not in bytes(kept.sealed)
    assert secret.encode() not in bytes(kept.sealed)
    written = [*DestinationChange.objects.values_list("data", flat=True), *Event.objects.values_list("body")]
    assert secret not in str(written)
    assert secret.removeprefix("whsec_") not in str(written)
    assert books.pk not in secret


def test_both_sign_until_the_overlap_is_over(people: Cast, consumer: ConsumerProcess) -> None:
    books, old = destination(people, consumer)
    new = rotated(books)
    received = sent(people, consumer)
    assert verifies(old, received)
    assert verifies(new, received)
    DestinationSecret.objects.filter(retires_at__isnull=False).update(retires_at=database_clock())
    received = sent(people, consumer)
    assert not verifies(old, received)
    assert verifies(new, received)


def test_without_overlap_every_one_before_ends_at_once(people: Cast, consumer: ConsumerProcess) -> None:
    books, first = destination(people, consumer)
    second = rotated(books)
    third = rotated(books, overlap=timedelta(0))
    received = sent(people, consumer)
    assert [verifies(secret, received) for secret in (first, second, third)] == [False, False, True]


def test_two_rotations_at_once_are_a_queue(people: Cast, consumer: ConsumerProcess) -> None:
    books, _ = destination(people, consumer)
    made = at_once(lambda: rotated(books), lambda: rotated(books))
    assert DestinationSecret.objects.filter(retires_at=None).count() == 1
    received = sent(people, consumer)
    assert all(verifies(secret, received) for secret in made)


@pytest.mark.parametrize("keys", [(NEW,), (), ("not a key",)], ids=["another", "none", "nonsense"])
def test_what_cannot_be_unsealed_sends_nothing_and_heals(
    people: Cast, consumer: ConsumerProcess, settings: Any, keys: tuple[str, ...]
) -> None:
    settings.LEDGER_SEALING_KEYS = (OLD,)
    _, secret = destination(people, consumer)
    told(people)
    settings.LEDGER_SEALING_KEYS = keys
    for _ in range(10):  # more than the schedule has
        make_due()
        rested()
        assert deliver_once().states == {"PENDING": 1}
    assert consumer.received() == []
    assert set(Delivery.objects.get().sent_tries.values_list("ended_as", flat=True)) == {"not_sent"}
    assert "LEDGER_SEALING_KEYS" in (Delivery.objects.get().sent_tries.latest("number").detail or "")
    settings.LEDGER_SEALING_KEYS = (NEW, OLD)
    make_due()
    rested()
    assert deliver_once().states == {"ACKED": 1}
    assert verifies(secret, consumer.received()[0])
    all_is_well()


def test_a_retiring_one_that_cannot_be_unsealed_keeps_nobody_from_sending(
    people: Cast, consumer: ConsumerProcess, settings: Any
) -> None:
    settings.LEDGER_SEALING_KEYS = (OLD,)
    books, old = destination(people, consumer)
    settings.LEDGER_SEALING_KEYS = (NEW,)
    new = rotated(books)
    received = sent(people, consumer)
    assert verifies(new, received)
    assert not verifies(old, received)


def test_a_destination_of_old_gets_its_secret_by_rotation(people: Cast, consumer: ConsumerProcess) -> None:
    books = Destination.objects.create(tenant=people.tenant, name="old", url=consumer.url, ack="response")
    told(people)
    assert deliver_once().states == {"PENDING": 1}
    secret = rotated(books)
    make_due()
    rested()
    assert deliver_once().states == {"ACKED": 1}
    assert verifies(secret, consumer.received()[0])
