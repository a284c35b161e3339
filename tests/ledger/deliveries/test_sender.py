"""A result reaches its consumer: signed, the same bytes at every try, ACKED by a 2xx and nothing else."""

from __future__ import annotations

import pytest
from standardwebhooks import Webhook

from ledger.deliveries import deliver_once
from ledger.fsck import run_fsck
from ledger.models import Delivery, Event, FsckForm
from ledger.rules.deliveries import Line, state_after
from tests.ledger.deliveries.helping import destination, make_due
from tests.support import make
from tests.support.cast import Cast
from tests.support.consumer import ConsumerProcess

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_confirmed_operation_is_told_once(people: Cast, consumer: ConsumerProcess) -> None:
    _, secret = destination(people, consumer)
    attempt = make.confirmed(people.key, result_ref="re_9")

    report = deliver_once()

    (received,) = consumer.received()
    assert Webhook(secret).verify(received.body, dict(received.headers)) == received.event
    assert received.event["type"] == "ledger.operation.confirmed.v1"
    assert received.event["subject"] == attempt.operation_id
    assert received.event["data"]["result_ref"] == "re_9"
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.tries, report.states) == ("ACKED", 1, {"ACKED": 1})
    assert received.headers["idempotency-key"] == received.webhook_id == delivery.webhook_id
    assert deliver_once().tried == 0
    assert run_fsck(FsckForm.WHOLE).findings == ()


def test_every_try_carries_the_same_bytes(people: Cast, consumer: ConsumerProcess) -> None:
    destination(people, consumer)
    make.confirmed(people.key)
    consumer.answer(500)
    for _ in range(3):
        deliver_once()
        make_due(Delivery.objects.get())
    consumer.answer(204)
    deliver_once()
    received = consumer.received()
    assert len(received) == 4
    assert len({(one.body, one.webhook_id) for one in received}) == 1
    delivery = Delivery.objects.get()
    assert [made.ended_as for made in delivery.sent_tries.order_by("number")] == [
        *["unavailable"] * 3,
        "received",
    ]
    lines = (
        Event.objects.filter(kind__startswith="delivery.").order_by("sequence").values_list("kind", flat=True)
    )
    assert state_after(Line(kind.removeprefix("delivery.")) for kind in lines) == delivery.state == "ACKED"
