"""R73: a replay from the dead-letter box loses its order.

Kind: old news that arrives after the new.

A new settlement waits for no earlier one, so order on the line is nobody's promise: each message carries its
operation and its number, and a consumer keeps the highest. A plan makes each operation's due in their order
all the same, and what a person had sent again is marked.
"""

from __future__ import annotations

from ledger.deliveries import deliver_once, give_up, plan_redelivery
from ledger.models import Delivery
from ledger.transactions import durable
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.ledger.deliveries.helping import destination
from tests.ledger.deliveries.settled import confirmed_after_all, failed_first
from tests.support import make
from tests.support.consumer import ConsumerProcess, Received

REPLAY = "ledger-replay"


def number(received: Received) -> int:
    return int(received.event["sequence"])


def replay_all(scene: Scene) -> None:
    """Every dead letter, as a person asks for it, in no order of theirs."""
    dead = Delivery.objects.filter(state="DEAD_LETTERED").order_by("-pk").values_list("pk", flat=True)
    durable(
        lambda: plan_redelivery(
            tenant_id=scene.people.tenant.pk,
            delivery_ids=list(dead),
            by=scene.people.operator,
            why="they are back",
            rate_per_s=1_000,
            chosen_by={"state": "DEAD_LETTERED"},
        )
    )
    while deliver_once(pass_s=20).more:
        pass


def given_up(scene: Scene, delivery: Delivery) -> None:
    durable(lambda: give_up(delivery_id=delivery.pk, by=scene.people.operator, why="they are down"))


def test_a_replayed_old_result_says_that_it_is_old(scene: Scene, consumer: ConsumerProcess) -> None:
    destination(scene.people, consumer)
    make.policy(scene.people.tenant)
    operation_id = failed_first(scene.people)
    given_up(scene, Delivery.objects.get())
    confirmed_after_all(scene.people, operation_id)
    deliver_once()
    replay_all(scene)

    newer, older = consumer.received()
    assert (number(newer), number(older)) == (2, 1)
    assert newer.event["subject"] == older.event["subject"] == operation_id
    assert REPLAY not in newer.headers
    assert older.headers[REPLAY] == "true"
    kept = max(consumer.received(), key=number)
    assert kept.event["type"] == "ledger.operation.confirmed.v1"
    nothing_else_went_wrong(scene)


def test_a_plan_sends_each_operations_results_in_their_order(scene: Scene, consumer: ConsumerProcess) -> None:
    destination(scene.people, consumer, most_at_once=1)
    make.policy(scene.people.tenant)
    for _ in range(4):
        confirmed_after_all(scene.people, failed_first(scene.people))
    for delivery in Delivery.objects.order_by("-pk"):
        given_up(scene, delivery)
    replay_all(scene)
    sent = [(one.event["subject"], number(one)) for one in consumer.received()]
    assert len(sent) == 8
    for operation_id in {subject for subject, _ in sent}:
        assert [count for subject, count in sent if subject == operation_id] == [1, 2]
    assert {one.headers.get(REPLAY) for one in consumer.received()} == {"true"}
    nothing_else_went_wrong(scene)
