"""R65: a redirect counted as delivered, the body lost.

Kind: an answer that sends elsewhere, taken for receipt.

No redirect is followed: any 3xx is a failed try of the class *redirect*, its target is kept for who looks,
and it is tried again by the schedule.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ledger.deliveries import deliver_once
from ledger.models import Delivery
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.ledger.deliveries.helping import destination, make_due
from tests.support.consumer import ConsumerProcess


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsumerProcess]:
    """Answers 200 to whatever comes."""
    with ConsumerProcess(tmp_path_factory.mktemp("elsewhere")) as running:
        yield running


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 305, 307, 308])
def test_no_redirect_is_receipt(scene: Scene, consumer: ConsumerProcess, status: int) -> None:
    destination(scene.people, consumer)
    scene.confirmed()
    consumer.answer(status, headers={"Location": "https://www.books.example/hooks"})
    assert deliver_once(pass_s=0).states == {"SENT": 1}
    (made,) = Delivery.objects.get().sent_tries.all()
    assert (made.ended_as, made.status) == ("redirect", status)
    assert (made.answer_headers or {})["location"] == "https://www.books.example/hooks"
    consumer.answer(200)
    make_due()
    assert deliver_once().states == {"ACKED": 1}
    assert len({one.body for one in consumer.received()}) == 1
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("where", ["same host", "other host", "a page of its own"])
def test_nobody_follows(
    scene: Scene, consumer: ConsumerProcess, elsewhere: ConsumerProcess, where: str
) -> None:
    target = {"same host": "/there", "other host": elsewhere.url, "a page of its own": consumer.url}[where]
    destination(scene.people, consumer)
    scene.confirmed()
    consumer.answer(302, headers={"Location": target})
    deliver_once()
    assert len(consumer.received()) == 1
    assert elsewhere.received() == []
    assert Delivery.objects.get().state == "SENT"
    nothing_else_went_wrong(scene)
