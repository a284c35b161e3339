"""The sender against a receiver that nobody here wrote: accepted, and each bad message refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from ledger.deliveries import deliver_once, stop_sending
from ledger.deliveries.destinations import rotate_secret
from ledger.events import SYSTEM
from ledger.http import close_connections
from ledger.models import Delivery
from ledger.rules.webhooks import secret_text
from ledger.transactions import database_clock, durable
from tests.ledger.deliveries.helping import destination
from tests.support import make, vectors
from tests.support.cast import Cast, cast
from tests.support.receivers import VERIFIERS, ReceiverProcess


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReceiverProcess]:
    with ReceiverProcess(tmp_path_factory.mktemp("receiver")) as running:
        yield running
    close_connections()


@pytest.fixture
def sending() -> Iterator[None]:
    yield
    stop_sending()


@pytest.mark.usefixtures("transactional_db", "sending")
@pytest.mark.parametrize("verifier", VERIFIERS)
def test_what_the_sender_delivers_is_accepted_before_and_while_a_secret_is_replaced(
    receiver: ReceiverProcess, verifier: str
) -> None:
    people = cast()
    added, old = destination(people, receiver.url(verifier))
    receiver.know(old)
    deliver(people, "first:é/1.0")
    new = durable(lambda: rotate_secret(added, actor=SYSTEM, now=database_clock()))
    deliver(people, "signed with both")
    receiver.know(new)
    deliver(people, "read with the new one")
    assert set(Delivery.objects.values_list("state", "last_end", "tries")) == {("ACKED", "received", 1)}


def deliver(people: Cast, operation_key: str) -> None:
    make.confirmed(people.key, operation_key=operation_key)
    deliver_once()


@pytest.mark.usefixtures("transactional_db", "sending")
def test_a_secret_that_the_receiver_does_not_know_is_refused(receiver: ReceiverProcess) -> None:
    people = cast()
    added, old = destination(people, receiver.url("standard"))
    receiver.know(old)
    durable(lambda: rotate_secret(added, actor=SYSTEM, now=database_clock(), overlap=timedelta(0)))
    deliver(people, "signed with the new one alone")
    delivery = Delivery.objects.get()
    assert delivery.state != "ACKED"
    assert delivery.sent_tries.get().status == 400


@pytest.mark.parametrize("verifier", VERIFIERS)
def test_each_good_vector_is_accepted_and_each_bad_one_refused(
    receiver: ReceiverProcess, verifier: str
) -> None:
    receiver.know(secret_text(vectors.SECRET))
    made = vectors.vectors(datetime.now(UTC))
    with httpx.Client(trust_env=False, timeout=60) as wire:
        answers = {
            kind: {
                one.name: wire.post(
                    receiver.url(verifier), headers=dict(one.headers), content=one.body.encode()
                ).status_code
                for one in made[kind]
            }
            for kind in ("good", "bad")
        }
    assert set(answers["good"].values()) == {204}, answers["good"]
    assert set(answers["bad"].values()) == {400}, answers["bad"]
