"""A sender killed by SIGKILL at each of its boundaries: the consumer, in a process and on a disk of its own,
gets the same message again, and never another; no tool runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest

from ledger.deliveries import deliver_once
from ledger.faults import ARMED
from ledger.models import Attempt, Delivery, Event
from ledger.transactions import database_clock
from tests.ledger.deliveries.helping import all_is_well, destination, told
from tests.ledger.ingest.cast import database_url_of_tests
from tests.support.cast import Cast
from tests.support.consumer import ROOT, ConsumerProcess

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.crash, pytest.mark.slow]


def dies_at(point: str) -> int:
    """One pass in a process of its own."""
    environment = {
        **os.environ,
        "DATABASE_URL": database_url_of_tests(),
        "LEDGER_PRIVATE_NETS": "127.0.0.0/8",
        "LEDGER_ALLOW_HTTP": "1",
        ARMED: point,
    }
    return subprocess.run(
        [sys.executable, "manage.py", "deliver", "--once"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=False,
        timeout=120,
    ).returncode


@pytest.mark.parametrize(
    ("point", "received"), [("delivery.claimed", 0), ("delivery.sent", 1), ("delivery.before_commit", 1)]
)
def test_killed_at(people: Cast, consumer: ConsumerProcess, point: str, received: int) -> None:
    destination(people, consumer)
    (delivery,) = told(people)
    leaves = Event.objects.filter(kind="attempt.dispatched").count()

    assert dies_at(point) == -signal.SIGKILL
    assert len(consumer.received()) == received
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == ("PENDING", 1)
    assert deliver_once().tried == 0  # its lease is not over

    Delivery.objects.update(lease_until=database_clock() - timedelta(seconds=1))
    assert dies_at("") == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == ("ACKED", 2)
    assert len(consumer.received()) == received + 1
    assert {(one.webhook_id, one.body) for one in consumer.received()} == {
        (delivery.webhook_id, bytes(delivery.body or b""))
    }
    lost, made = delivery.sent_tries.order_by("number")
    assert (lost.ended_as, made.ended_as) == (None, "received")
    assert Event.objects.filter(kind="attempt.dispatched").count() == leaves
    assert Attempt.objects.count() == 1
    all_is_well()


def test_a_consumer_that_dies_after_it_kept_the_message_gets_it_again(
    people: Cast, consumer: ConsumerProcess
) -> None:
    destination(people, consumer)
    (delivery,) = told(people)
    consumer.answer(200, how="die")
    assert deliver_once().states == {"SENT": 1}
    consumer.kill()
    consumer.answer(200)
    consumer.start()
    Delivery.objects.update(next_at=database_clock())
    assert deliver_once().states == {"ACKED": 1}
    assert [one.webhook_id for one in consumer.received()] == [delivery.webhook_id] * 2
    all_is_well()
