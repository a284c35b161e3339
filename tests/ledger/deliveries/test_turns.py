"""Nobody's try waits for all that plans, pauses and time have to change: a pass does a part of it first."""

from __future__ import annotations

import pytest

from ledger.deliveries import deliver_once, holding, pause, plan_redelivery, resume, sender
from ledger.deliveries.holding import follow_pauses
from ledger.events import SYSTEM
from ledger.models import Delivery, DeliveryTry, Destination, PlannedRedelivery, RedeliveryPlan
from ledger.rules.deliveries import MOST_TRIES, PauseReason
from ledger.transactions import database_clock, durable
from tests.ledger.deliveries.helping import URL, all_is_well, dead, destination, make_due, told
from tests.support import make
from tests.support.cast import Cast
from tests.support.consumer import ConsumerProcess
from tests.support.told import delivery_of
from tests.support.told import destination as destination_of

pytestmark = pytest.mark.django_db(transaction=True)

STEPS = 2


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "PREPARE_STEPS", STEPS)
    monkeypatch.setattr(holding, "STEP", 1)


@pytest.fixture
def fresh(people: Cast, consumer: ConsumerProcess) -> Delivery:
    """Of another tenant, due now."""
    make.policy(people.other_tenant)
    destination_of(people.other_tenant, url=consumer.url)
    key = make.key(make.agent(people.other_tenant, people.stranger))
    return delivery_of(make.confirmed(key, make.TICKET))


def is_sent_by_one_pass(delivery: Delivery) -> bool:
    report = deliver_once(pass_s=0)
    assert report.more
    return DeliveryTry.objects.filter(delivery=delivery).exists()


def passes() -> None:
    while deliver_once().more:
        pass


def held(books: Destination) -> int:
    return Delivery.objects.filter(destination=books, held_at__isnull=False).count()


def resumed(people: Cast, books: Destination, count: int) -> None:
    """So many were held for it, and now it is there again."""
    durable(lambda: pause(books, PauseReason.PERSON, actor=SYSTEM, now=database_clock()))
    told(people, count)
    assert held(books) == count
    durable(lambda: resume(books, actor=SYSTEM, now=database_clock()))


def test_another_tenants_plans_delay_nobody(people: Cast, consumer: ConsumerProcess, fresh: Delivery) -> None:
    destination(people, consumer)
    for _ in range(STEPS):
        chosen = [delivery.pk for delivery in dead(people, 2)]
        durable(
            lambda chosen=chosen: plan_redelivery(  # type: ignore[misc]
                tenant_id=people.tenant.pk,
                delivery_ids=chosen,
                by=people.operator,
                why="they are back",
                rate_per_s=1_000,
                chosen_by={},
            )
        )
    assert is_sent_by_one_pass(fresh)
    assert PlannedRedelivery.objects.filter(done_at=None).count() == STEPS
    passes()
    assert not RedeliveryPlan.objects.filter(finished_at=None).exists()
    assert set(Delivery.objects.values_list("state", flat=True)) == {"ACKED"}
    all_is_well()


def test_what_is_held_for_another_destination_delays_nobody(
    people: Cast, consumer: ConsumerProcess, fresh: Delivery
) -> None:
    books = destination(people, consumer)[0]
    resumed(people, books, STEPS + 2)
    assert is_sent_by_one_pass(fresh)
    assert held(books) == 2
    passes()
    assert set(Delivery.objects.values_list("state", flat=True)) == {"ACKED"}
    all_is_well()


def test_what_nobody_acknowledged_delays_nobody(people: Cast, fresh: Delivery) -> None:
    books = destination(people, URL, ack="explicit")[0]
    told(people, STEPS + 2)
    overdue = Delivery.objects.filter(destination=books)
    overdue.update(tries=MOST_TRIES)
    make_due(*overdue)
    assert is_sent_by_one_pass(fresh)
    assert overdue.filter(state="DEAD_LETTERED").count() == STEPS
    passes()
    assert overdue.filter(state="DEAD_LETTERED").count() == STEPS + 2


def test_each_resumed_destination_has_its_turn(people: Cast) -> None:
    """Else one with very much that was held would keep the few of another for a long time."""
    many = destination(people, URL)[0]
    resumed(people, many, 24)
    Destination.objects.filter(pk=many.pk).update(tool_globs=["nothing.*"])
    few = destination(people, URL, name="few")[0]
    resumed(people, few, 1)
    steps = follow_pauses()
    while held(few):
        next(steps)
    assert held(many) > 0
