"""Consumers and people beside the sender: acknowledgements by their id, plans with a pace, busy rows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest
from django.db import connection, transaction

from ledger import transactions
from ledger.deliveries import (
    RedeliveryRefused,
    UnknownDelivery,
    cancel_plan,
    deliver_once,
    give_up,
    plan_redelivery,
    record_ack,
    redeliver,
    run_plans,
)
from ledger.models import Delivery, Operation, RedeliveryPlan, User
from ledger.rules.deliveries import MOST_TRIES
from ledger.transactions import database_clock, durable
from review.queries.redeliveries import plan_page
from review.roles import Role, take_role
from tests.ledger.deliveries.helping import URL, all_is_well, claimed, dead, destination, make_due, told
from tests.support import make
from tests.support.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def planned(people: Cast, deliveries: list[Delivery], rate_per_s: float = 1_000) -> RedeliveryPlan:
    return durable(
        lambda: plan_redelivery(
            tenant_id=people.tenant.pk,
            delivery_ids=[delivery.pk for delivery in deliveries],
            by=people.operator,
            why="they are back",
            rate_per_s=rate_per_s,
            chosen_by={},
        )
    )


def test_an_ack_needs_both_ids_and_the_own_tenant(people: Cast) -> None:
    destination(people, URL)
    first, second = told(people, 2)
    foreign = make.key(make.agent(people.other_tenant, people.stranger))
    for key, delivery_id, webhook_id in (
        (people.key, first.pk, second.webhook_id),
        (people.key, "dlv_" + "0" * 26, first.webhook_id),
        (foreign, first.pk, first.webhook_id),
    ):
        with pytest.raises(UnknownDelivery):
            durable(
                lambda key=key, delivery_id=delivery_id, webhook_id=webhook_id: record_ack(  # type: ignore[misc]
                    key=key, delivery_id=delivery_id, webhook_id=webhook_id, duplicate=False
                )
            )
    assert set(Delivery.objects.values_list("state", flat=True)) == {"PENDING"}
    all_is_well()


def test_what_waits_is_not_asked_for_again_and_what_ended_is_not_given_up(people: Cast) -> None:
    destination(people, URL)
    (waiting,) = told(people)
    with pytest.raises(RedeliveryRefused):
        durable(lambda: redeliver(delivery_id=waiting.pk, by=people.operator, why="now"))
    (ended,) = dead(people, 1)
    with pytest.raises(RedeliveryRefused):
        durable(lambda: give_up(delivery_id=ended.pk, by=people.operator, why="again"))
    all_is_well()


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), 1e-300, 1e300])
def test_a_plan_has_a_pace_that_can_be_kept(people: Cast, rate: float) -> None:
    destination(people, URL)
    with pytest.raises(RedeliveryRefused):
        planned(people, dead(people, 1), rate)


def test_a_plan_keeps_its_pace_skips_what_moved_and_stops(people: Cast) -> None:
    destination(people, URL)
    deliveries = dead(people, 4)
    plan = planned(people, deliveries, rate_per_s=0.01)
    assert sum(run_plans()) == 1
    assert sum(run_plans()) == 0
    durable(lambda: redeliver(delivery_id=deliveries[1].pk, by=people.operator, why="this one now"))
    RedeliveryPlan.objects.update(next_at=database_clock())
    assert sum(run_plans()) == 0
    assert plan.lines.get(position=2).skipped == "it is PENDING"
    assert durable(lambda: cancel_plan(plan=plan, by=people.operator)) is True
    assert sum(run_plans()) == 0
    assert Delivery.objects.filter(state="DEAD_LETTERED").count() == 2
    all_is_well()


@pytest.mark.parametrize("lost", ["role", "account"])
def test_a_plan_stops_once_its_planner_may_not_decide_any_more(people: Cast, lost: str) -> None:
    destination(people, URL)
    plan = planned(people, dead(people, 3), rate_per_s=0.01)
    assert sum(run_plans()) == 1
    if lost == "role":
        take_role(people.operator, people.tenant, Role.OPERATOR)
    else:
        User.objects.filter(pk=people.operator.pk).update(is_active=False)
    RedeliveryPlan.objects.update(next_at=database_clock())
    assert sum(run_plans()) == 0
    plan.refresh_from_db()
    assert (plan.cancelled_at is None, plan.cancelled_by, plan.next_at) == (False, None, None)
    assert Delivery.objects.filter(state="DEAD_LETTERED").count() == 2
    page = plan_page(people.viewer, plan.pk)
    assert page.cancelled_because == "because operator may no longer decide work here"
    all_is_well()


def test_plans_take_turns(people: Cast) -> None:
    destination(people, URL)
    first, second = planned(people, dead(people, 2)), planned(people, dead(people, 2))
    steps = run_plans()
    assert [next(steps) for _ in range(2)] == [1, 1]
    assert [plan.lines.filter(done_at=None).count() for plan in (first, second)] == [1, 1]


@contextmanager
def busy(operation_id: str) -> Iterator[None]:
    """Somebody else holds the operation; we wait for it no longer than a moment."""
    held, let_go = Event(), Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                Operation.objects.select_for_update().get(pk=operation_id)
                held.set()
                let_go.wait(60)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        holds = pool.submit(hold)
        assert held.wait(30)
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '50ms'")
        try:
            yield
        finally:
            let_go.set()
            holds.result()
            connection.close()


@pytest.fixture
def waits_for_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for one that others hold ends in an error at once."""
    monkeypatch.setattr(transactions, "_WHOLE_TRANSACTION_AGAIN", ())


@pytest.mark.usefixtures("waits_for_no_lock")
def test_a_busy_operation_makes_nobody_else_wait(people: Cast) -> None:
    destination(people, URL)
    overdue = told(people, 2)
    Delivery.objects.update(tries=MOST_TRIES)
    make_due()
    with busy(overdue[0].operation_id):
        assert deliver_once(pass_s=0).not_acknowledged == 1
    assert set(Delivery.objects.filter(state="DEAD_LETTERED")) == {overdue[1]}
    assert deliver_once(pass_s=0).not_acknowledged == 1


@pytest.mark.usefixtures("waits_for_no_lock")
def test_a_plan_waits_for_a_busy_operation_and_goes_on(people: Cast) -> None:
    destination(people, URL)
    first, second = dead(people, 2)
    planned(people, [first])
    planned(people, [second])
    with busy(first.operation_id):
        assert sum(run_plans()) == 1
    assert set(Delivery.objects.filter(state="PENDING")) == {second}
    RedeliveryPlan.objects.filter(finished_at=None).update(next_at=database_clock())
    assert sum(run_plans()) == 1
    assert len(claimed(2)) == 2
    all_is_well()
