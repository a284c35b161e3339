"""A sender killed by SIGKILL at each of its boundaries: the consumer, in a process and on a disk of its own,
gets the same message again, and never another; no tool runs."""

from __future__ import annotations

import signal
import subprocess
from datetime import timedelta

import pytest

from ledger.deliveries import deliver_once
from ledger.faults import ARMED
from ledger.models import Attempt, Delivery, Event
from ledger.transactions import database_clock
from tests.ledger.deliveries.helping import all_is_well, destination, told
from tests.support.beside import start_command
from tests.support.cast import Cast
from tests.support.consumer import ConsumerProcess
from tests.support.processes import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.crash, pytest.mark.slow]


def deliverer(*options: str, dies_at: str = "") -> subprocess.Popen[bytes]:
    """A process of its own."""
    return start_command("deliver", *options, **{ARMED: dies_at})


def dies_at(point: str) -> int:
    return deliverer("--once", dies_at=point).wait(timeout=120)


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


def test_asked_to_stop_it_records_what_is_under_way(people: Cast, consumer: ConsumerProcess) -> None:
    """In its loop no pass waits for a slow consumer; at its end it does, so nobody is told twice."""
    destination(people, consumer)
    told(people)
    consumer.answer(200, wait_s=2)
    running = deliverer("--every", "0.1")
    wait_until(lambda: len(consumer.received()) == 1, within_s=60, what="it is sent")
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=60) == 0
    assert Delivery.objects.get().state == "ACKED"
    assert len(consumer.received()) == 1
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
