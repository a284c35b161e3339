"""The words of these tests: a destination, and time that has passed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection, transaction

from ledger.deliveries import add_destination, give_up, redeliver
from ledger.deliveries.claiming import Claim, claim_due
from ledger.deliveries.posting import Posted
from ledger.deliveries.recording import Ended, record_ends
from ledger.events import SYSTEM
from ledger.fsck import run_fsck
from ledger.models import Delivery, Destination, Event, FsckForm
from ledger.rules.deliveries import Line, TryEnd, state_after
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import Cast
from tests.support.consumer import ConsumerProcess

URL = "https://books.example/"


def destination(
    people: Cast,
    consumer: ConsumerProcess | str,
    *,
    ack: str = "response",
    name: str = "books",
    **columns: Any,
) -> tuple[Destination, str]:
    """Added by the real verb, with other limits than it gives; its secret."""
    url = consumer if isinstance(consumer, str) else consumer.url
    added, secret = durable(
        lambda: add_destination(tenant_id=people.tenant.pk, name=name, url=url, ack=ack, actor=SYSTEM)
    )
    if columns:
        Destination.objects.filter(pk=added.pk).update(**columns)
        added.refresh_from_db()
    return added, secret


def make_due(*deliveries: Delivery) -> None:
    """A test does not wait for the schedule; without any named, all that wait are due."""
    waiting = Delivery.objects.filter(next_at__isnull=False)
    if deliveries:
        waiting = waiting.filter(pk__in=[delivery.pk for delivery in deliveries])
    waiting.update(next_at=database_clock() - timedelta(seconds=1))


def rested(**columns: Any) -> None:
    """No destination rests any more."""
    Destination.objects.update(rests_until=None, **columns)


def lease_over(*deliveries: Delivery) -> None:
    """Whoever sent these is not heard from any more."""
    Delivery.objects.filter(pk__in=[delivery.pk for delivery in deliveries]).update(
        lease_until=database_clock() - timedelta(seconds=1)
    )


def told(people: Cast, count: int = 1) -> list[Delivery]:
    """So many operations were confirmed; their deliveries."""
    attempts = [make.confirmed(people.key, make.TICKET) for _ in range(count)]
    operations = [attempt.operation_id for attempt in attempts]
    return list(Delivery.objects.filter(operation__in=operations).order_by("pk"))


def dead(people: Cast, count: int) -> list[Delivery]:
    """So many deliveries that a person gave up."""
    deliveries = told(people, count)
    for delivery in deliveries:
        durable(lambda pk=delivery.pk: give_up(delivery_id=pk, by=people.operator, why="down"))  # type: ignore[misc]
    return deliveries


def claimed(at_most: int = 1) -> list[Claim]:
    """What a sender took, and has not sent yet."""
    return claim_due(at_most=at_most)


def ended(claim: Claim, end: TryEnd, **posted: Any) -> str:
    """A sender records how a try of its ended; the state that follows."""
    return str(durable(lambda: record_ends([Ended(claim, Posted(end, **posted))]))[claim.delivery_id])


def tried(end: TryEnd, **posted: Any) -> str:
    """One delivery is due, claimed, and its try ends so."""
    make_due()
    rested()
    (claim,) = claimed()
    return ended(claim, end, **posted)


def lines_of(delivery: Delivery) -> list[str]:
    """The delivery's own history."""
    events = Event.objects.filter(operation=delivery.operation_id, kind__startswith="delivery.")
    mine = [event for event in events.order_by("sequence") if event.data["delivery"] == delivery.pk]
    return [event.kind.removeprefix("delivery.") for event in mine]


def redelivered(people: Cast, delivery: Delivery) -> None:
    durable(lambda: redeliver(delivery_id=delivery.pk, by=people.operator, why="asked for"))


def all_is_well() -> None:
    """Every invariant holds, and each delivery is what its events add up to."""
    assert run_fsck(FsckForm.WHOLE).findings == ()
    for delivery in Delivery.objects.all():
        assert state_after(map(Line, lines_of(delivery))) == delivery.state


def past_the_triggers(sql: str, **parameters: str) -> None:
    """What another version of this program, or a hand in the database, did."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in sql.split("; "):
            cursor.execute(statement, parameters)


def more_waiting(like: Delivery, count: int) -> None:
    """So many more deliveries wait for the same destination, put past the verbs, which take minutes."""
    columns = "tenant_id, operation_id, number, outcome, attempt_id, event_id, at"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            f"INSERT INTO ledger_settlement ({columns}) "  # noqa: S608
            "SELECT tenant_id, operation_id, made, outcome, attempt_id, 'evt_' || made, at "
            "FROM ledger_settlement, generate_series(2, %s) made WHERE id = %s",
            [count + 1, like.settlement_id],
        )
        cursor.execute(
            "INSERT INTO ledger_delivery (id, tenant_id, operation_id, settlement_id, destination_id, "
            "webhook_id, state, created_at, next_at) SELECT 'dlv_' || made.id, made.tenant_id, "
            "made.operation_id, made.id, %s, 'msg_' || made.id, 'PENDING', made.at, now() "
            "FROM ledger_settlement made WHERE operation_id = %s AND number > 1",
            [like.destination_id, like.operation_id],
        )
