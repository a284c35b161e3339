"""R69: two relays publish the same row, or mark it sent without sending.

Kind: two who take the same work, and a mark without the deed.

A row is taken by whoever holds its lease; the event id is the delivery's own in every try. Where nobody can
be sent to, nothing is SENT: a settlement without destinations has no delivery, and one whose destination
cannot be signed for stays PENDING with the reason.
"""

from __future__ import annotations

from collections import Counter

from ledger.deliveries import deliver_once, pause
from ledger.events import SYSTEM
from ledger.models import Delivery, DeliveryTry, Destination
from ledger.rules.deliveries import PauseReason
from ledger.transactions import database_clock, durable
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.ledger.deliveries.helping import destination, told
from tests.support import make
from tests.support.beside import start_command
from tests.support.consumer import ConsumerProcess

RELAYS = 4
ROWS = 40


def test_four_relays_publish_each_row_once(scene: Scene, consumer: ConsumerProcess) -> None:
    destination(scene.people, consumer, most_at_once=12)
    make.policy(scene.people.tenant)
    told(scene.people, ROWS)
    relays = [start_command("deliver", "--once") for _ in range(RELAYS)]
    assert [running.wait(timeout=300) for running in relays] == [0] * RELAYS
    deliver_once(pass_s=30)  # where their few seconds were not enough
    ids = Counter(one.webhook_id for one in consumer.received())
    assert ids == Counter(Delivery.objects.values_list("webhook_id", flat=True))
    assert set(ids.values()) == {1}
    assert {one.event["id"] for one in consumer.received()} == set(ids)
    assert DeliveryTry.objects.count() == ROWS
    nothing_else_went_wrong(scene)


def test_without_any_destination_nothing_is_sent(scene: Scene) -> None:
    scene.confirmed()
    assert deliver_once().tried == 0
    assert not Delivery.objects.exists()
    nothing_else_went_wrong(scene)


def test_without_a_way_to_send_it_stays_pending_with_the_reason(
    scene: Scene, consumer: ConsumerProcess
) -> None:
    tenant = scene.people.tenant
    Destination.objects.create(tenant=tenant, name="unsigned", url=consumer.url, ack="response")
    paused, _ = destination(scene.people, consumer, name="paused")
    durable(lambda: pause(paused, PauseReason.PERSON, actor=SYSTEM, now=database_clock()))
    scene.confirmed()
    deliver_once()
    assert set(Delivery.objects.values_list("state", flat=True)) == {"PENDING"}
    (unsent,) = DeliveryTry.objects.all()
    assert (unsent.ended_as, unsent.sent_headers) == ("not_sent", {})
    assert "has no secret" in (unsent.detail or "")
    assert Delivery.objects.get(destination=paused).held_at is not None
    assert consumer.received() == []
    nothing_else_went_wrong(scene)
