"""Who hears of a settlement, what they are told, and that a later one reaches everyone, held back by none."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from celery import current_app

from ledger import lifecycle, outbox
from ledger.deliveries import deliver_once, pause, resume
from ledger.events import SYSTEM
from ledger.models import Delivery, Settlement
from ledger.rules.deliveries import PauseReason
from ledger.transactions import database_clock, durable
from tests.ledger.deliveries.helping import (
    all_is_well,
    destination,
    make_due,
    past_the_triggers,
    rested,
    told,
)
from tests.ledger.deliveries.settled import confirmed_after_all, failed_first
from tests.support import make
from tests.support.cast import Cast
from tests.support.consumer import ConsumerProcess
from tests.support.processes import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def body_of(delivery: Delivery) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(bytes(delivery.body or b"{}"))
    return document


@pytest.mark.parametrize("first_end", [503, 410, 200, None], ids=str)
def test_a_correction_reaches_who_heard_the_earlier_result_and_waits_for_nothing(
    people: Cast, consumer: ConsumerProcess, first_end: int | None
) -> None:
    """The earlier one is between tries, held, acknowledged, or was never tried; its destination even wants
    to hear of failures alone."""
    books, _ = destination(people, consumer, outcomes=["failed"])
    operation_id = failed_first(people)
    if first_end is not None:
        consumer.answer(first_end)
        deliver_once()
    confirmed_after_all(people, operation_id)
    first, second = Delivery.objects.order_by("settlement__number")
    assert (body_of(second)["sequence"], body_of(second)["type"]) == (2, "ledger.operation.confirmed.v1")
    if first_end == 410:
        assert second.held_at is not None
        durable(lambda: resume(books, actor=SYSTEM, now=database_clock()))
    consumer.forget()
    consumer.answer(200)
    rested()
    deliver_once()
    assert second.webhook_id in {one.webhook_id for one in consumer.received()}
    second.refresh_from_db()
    assert second.state == "ACKED"
    all_is_well()
    assert first.webhook_id != second.webhook_id


def test_a_result_is_that_of_the_attempt_that_counts(people: Cast, consumer: ConsumerProcess) -> None:
    """Another tool under the same key is held, and was never sent: nobody hears of it."""
    mails, _ = destination(people, consumer, name="mails", tool_globs=[make.MAIL])
    destination(people, consumer, name="refunds", tool_globs=[make.REFUND])
    attempt = make.dispatched(people.key)
    other = make.intent_of(make.REFUND, operation_key=attempt.operation.operation_key)
    make.posted(people.key, other)
    make.reported(people.key, attempt, "failed", no_effect=True, error_class="declined")
    settlement = Settlement.objects.get()
    assert settlement.attempt == attempt
    assert body_of(settlement.deliveries.get(destination=mails))["data"]["attempt_id"] == attempt.pk


def test_a_dead_first_result_holds_back_no_second(people: Cast, consumer: ConsumerProcess) -> None:
    destination(people, consumer)
    operation_id = failed_first(people)
    consumer.answer(500)
    for _ in range(8):
        make_due()
        rested()
        deliver_once()
    assert Delivery.objects.get().state == "DEAD_LETTERED"
    confirmed_after_all(people, operation_id)
    consumer.answer(200)
    rested()
    deliver_once()
    assert set(Delivery.objects.values_list("settlement__number", "state")) == {
        (1, "DEAD_LETTERED"),
        (2, "ACKED"),
    }
    all_is_well()


def test_with_no_destination_at_all_an_operation_settles(people: Cast) -> None:
    make.confirmed(people.key)
    assert not Delivery.objects.exists()
    assert deliver_once().tried == 0
    all_is_well()


def test_failed_and_cancelled_are_told(people: Cast, consumer: ConsumerProcess) -> None:
    destination(people, consumer)
    make.reported(people.key, make.dispatched(people.key), "failed", no_effect=True, error_class="declined")
    recorded = make.recorded(people.key)
    durable(
        lambda: lifecycle.cancel_operation(
            key=people.key, operation_id=recorded.operation_id, reason="not needed"
        )
    )
    deliver_once()
    assert sorted(one.event["type"] for one in consumer.received()) == [
        "ledger.operation.cancelled.v1",
        "ledger.operation.failed.v1",
    ]
    assert {one.event["data"]["result_ref"] for one in consumer.received()} == {None}


def test_relinked_names_the_operation_it_mirrors(people: Cast, consumer: ConsumerProcess) -> None:
    """Also where the attempt that was relinked is not the newest one."""
    destination(people, consumer)
    target = make.confirmed(people.key, make.TICKET)
    deliver_once()
    (delivery,) = told(people)
    attempt = delivery.settlement.attempt
    make.variant(people.key, attempt, {"title": "another one"})
    past_the_triggers(
        "UPDATE ledger_attempt SET state = 'SUPERSEDED', relinked_to_id = %(target)s WHERE id = %(attempt)s; "
        "UPDATE ledger_settlement SET outcome = 'relinked', attempt_id = (SELECT id FROM ledger_attempt "
        "WHERE operation_id = %(operation)s ORDER BY number DESC LIMIT 1) "
        "WHERE operation_id = %(operation)s; "
        "UPDATE ledger_delivery SET body = NULL WHERE operation_id = %(operation)s",
        target=target.operation_id,
        attempt=attempt.pk,
        operation=attempt.operation_id,
    )
    deliver_once()
    relinked = consumer.received()[-1].event
    assert relinked["type"] == "ledger.operation.relinked.v1"
    assert relinked["subject"] == attempt.operation_id
    assert relinked["data"]["relinked_to"] == target.operation_id


def test_globs_and_outcomes_choose(people: Cast, consumer: ConsumerProcess) -> None:
    destination(people, consumer, name="mail", tool_globs=["email.*"])
    destination(people, consumer, name="failures", outcomes=["failed"])
    make.confirmed(people.key, make.TICKET)
    assert not Delivery.objects.exists()
    make.confirmed(people.key, make.MAIL)
    assert Delivery.objects.get().destination.name == "mail"


def test_a_paused_destination_is_held_from_the_start_and_released_in_steps(
    people: Cast, consumer: ConsumerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.deliveries.holding.STEP", 2)
    books, _ = destination(people, consumer)
    waiting = told(people, 2)
    durable(lambda: pause(books, PauseReason.PERSON, actor=SYSTEM, now=database_clock(), why="moving house"))
    held = told(people, 3)
    assert all(delivery.held_at for delivery in held)
    assert deliver_once().tried == 0
    assert Delivery.objects.filter(held_at__isnull=False, next_at=None).count() == 5
    assert consumer.received() == []
    durable(lambda: resume(books, actor=SYSTEM, now=database_clock()))
    report = deliver_once()
    assert (report.moved, report.states) == (5, {"ACKED": 5})
    assert {one.webhook_id for one in consumer.received()} == {
        delivery.webhook_id for delivery in (*waiting, *held)
    }
    all_is_well()


def test_a_row_from_before_bodies_were_stored_is_frozen_at_its_first_try(
    people: Cast, consumer: ConsumerProcess
) -> None:
    destination(people, consumer)
    (delivery,) = told(people)
    as_it_would_be = bytes(delivery.body or b"")
    blank = Delivery.objects.filter(pk=delivery.pk)
    past_the_triggers("UPDATE ledger_delivery SET body = NULL WHERE id = %(id)s", id=delivery.pk)
    assert blank.get().body is None
    consumer.answer(500)
    deliver_once()
    people.tenant.slug = "renamed"
    people.tenant.save(update_fields=["slug"])
    consumer.answer(200)
    make_due()
    deliver_once()
    assert [one.body for one in consumer.received()] == [as_it_would_be] * 2
    assert bytes(blank.get().body or b"") == as_it_would_be


def test_a_broker_that_hangs_or_breaks_costs_a_settlement_nothing(
    people: Cast, consumer: ConsumerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination(people, consumer)
    answers, asked = threading.Event(), threading.Event()

    def hangs(*_: object, **__: object) -> None:
        asked.set()
        answers.wait(60)
        raise RuntimeError("no broker")

    monkeypatch.setattr(outbox, "_hints", None)
    monkeypatch.setattr(current_app, "send_task", hangs)
    told(people, 3)
    wait_until(asked.is_set, within_s=10, what="the hint is on its way")
    assert Settlement.objects.count() == 3
    assert deliver_once().states == {"ACKED": 3}
    monkeypatch.setattr(outbox, "QUIET_S", 0.0)
    answers.set()
    told(people)
    assert Settlement.objects.count() == 4
