"""R80: the consumer stored the id, its work crashed, the next try was answered "duplicate", and it was lost.

Kind: a mark that is there before what it stands for.

ACKED says that it was received and no more. The ledger cannot see such a loss; a person can send it once
more, under the same id and marked as a replay, and no tool runs. The inbox refuses a mark that would be
committed before the work.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from ledger.client.conformance.wire import Process
from ledger.deliveries import add_destination, deliver_once, stop_sending
from ledger.deliveries.redelivering import redeliver
from ledger.events import SYSTEM
from ledger.models import Delivery
from ledger.rules.states import DeliveryState
from ledger.transactions import database_clock, durable
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.support.processes import free_port
from tests.support.serving import ROOT


@dataclass
class Consumer:
    """A consumer's process and its books, at a destination of the scene."""

    directory: Path
    process: Process
    url: str

    def dies_between_mark_and_work(self) -> None:
        (self.directory / "die").touch()

    def is_started_again(self) -> None:
        (self.directory / "die").unlink(missing_ok=True)
        self.process.kill()
        self.process.start()

    def forgets_its_marks(self) -> None:
        with closing(sqlite3.connect(self.directory / "books.sqlite")) as books, books:
            books.execute("DELETE FROM ledger_inbox")
            books.execute("DELETE FROM ledger_inbox_newest")

    def applied(self) -> list[str]:
        return httpx.get(self.url, trust_env=False, timeout=60).text.split()

    def received(self) -> list[str]:
        """The webhook id and the mark of a replay (or "-") of each request."""
        return (self.directory / "received").read_text().splitlines()


@pytest.fixture
def consumer(
    request: pytest.FixtureRequest, scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Consumer]:
    """Of the kind that the test names."""
    monkeypatch.chdir(ROOT)
    port = free_port()
    url = f"http://127.0.0.1:{port}/hooks"
    tenant_id = scene.people.tenant.pk
    _, secret = durable(
        lambda: add_destination(tenant_id=tenant_id, name="books", url=url, ack="response", actor=SYSTEM)
    )
    program = f"{sys.executable} -m tests.ledger.client.conformance.consumer"
    process = Process(f"{program} {tmp_path} {port} {secret} {request.param}", url, ready_s=60)
    try:
        process.start()
        yield Consumer(tmp_path, process, url)
    finally:
        process.close()
        stop_sending()


def crashed_and_sent_again(scene: Scene, consumer: Consumer) -> Delivery:
    """Confirmed; the consumer dies between mark and work at the first try, and the second one comes."""
    consumer.dies_between_mark_and_work()
    scene.confirmed()
    deliver_once()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.tries) == (DeliveryState.SENT, 1)
    consumer.is_started_again()
    Delivery.objects.update(next_at=database_clock())
    deliver_once()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == (DeliveryState.ACKED, 2)
    return delivery


def sent_by_a_person(scene: Scene, delivery: Delivery) -> None:
    durable(lambda: redeliver(delivery_id=delivery.pk, by=scene.people.operator, why="lost in their books"))
    deliver_once()


@pytest.mark.parametrize("consumer", ["marks_first"], indirect=True)
def test_what_was_marked_first_is_lost_and_a_person_can_send_it_again(
    scene: Scene, consumer: Consumer
) -> None:
    delivery = crashed_and_sent_again(scene, consumer)
    assert consumer.applied() == [], "it was received, and that is all that ACKED says"
    consumer.forgets_its_marks()
    sent_by_a_person(scene, delivery)
    assert consumer.applied() == [delivery.webhook_id]
    assert consumer.received() == [f"{delivery.webhook_id} {mark}" for mark in ("-", "-", "true")]
    assert scene.effects() == 1, "the tool did not run again"
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("consumer", ["right"], indirect=True)
def test_mark_and_work_in_one_transaction_lose_nothing_and_repeat_nothing(
    scene: Scene, consumer: Consumer
) -> None:
    delivery = crashed_and_sent_again(scene, consumer)
    assert consumer.applied() == [delivery.webhook_id]
    sent_by_a_person(scene, delivery)
    assert consumer.applied() == [delivery.webhook_id]
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == (DeliveryState.ACKED, 3)
    assert scene.effects() == 1
    nothing_else_went_wrong(scene)


def test_no_page_says_processed() -> None:
    pages = list((ROOT / "templates").rglob("*.html"))
    assert pages
    assert [page.name for page in pages if "processed" in page.read_text().lower()] == []
