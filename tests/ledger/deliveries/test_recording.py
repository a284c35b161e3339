"""What the end of a try leads to, also where something else happened while it was under way."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.deliveries import deliver_once, give_up, record_ack
from ledger.deliveries.posting import Posted
from ledger.deliveries.recording import Ended, record_ends
from ledger.models import Delivery, DeliveryTry, Destination
from ledger.rules.deliveries import MOST_TRIES, TryEnd
from ledger.transactions import database_clock, durable
from tests.ledger.deliveries.helping import (
    URL,
    all_is_well,
    claimed,
    destination,
    ended,
    lease_over,
    lines_of,
    make_due,
    redelivered,
    told,
    tried,
)
from tests.support.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asking(people: Cast) -> Destination:
    """A consumer that acknowledges by its own call."""
    return destination(people, URL, ack="explicit", ack_deadline_s=60)[0]


def ack(people: Cast, delivery: Delivery, *, duplicate: bool = False) -> bool:
    """The consumer's own call; was it acknowledged before?"""
    said = durable(
        lambda: record_ack(
            key=people.key, delivery_id=delivery.pk, webhook_id=delivery.webhook_id, duplicate=duplicate
        )
    )
    return said.repeated


def used_up(end: TryEnd = TryEnd.UNAVAILABLE) -> Delivery:
    for _ in range(MOST_TRIES):
        tried(end)
    return Delivery.objects.get()


def test_the_schedule_ends_in_a_dead_letter_with_its_owner(people: Cast, books: Destination) -> None:
    told(people)
    assert [tried(TryEnd.UNAVAILABLE) for _ in range(MOST_TRIES)] == ["SENT"] * 7 + ["DEAD_LETTERED"]
    dead = Delivery.objects.get()
    assert (dead.dead_reason, dead.next_at, dead.tries) == ("tries_used_up", None, 8)
    assert dead.owner_group is not None
    make_due()
    assert claimed() == []
    all_is_well()


@pytest.mark.parametrize("end", TryEnd)
@pytest.mark.parametrize("many", [1, 3])
def test_the_end_of_a_try_that_is_recorded_again_counts_once(
    people: Cast, books: Destination, end: TryEnd, many: int
) -> None:
    """The commit was done, and the connection lost before anybody heard of it."""
    told(people, many)
    ends = [Ended(claim, Posted(end)) for claim in claimed(many)]
    first = durable(lambda: record_ends(ends))
    before = all_of_them()
    assert durable(lambda: record_ends(ends)) == first
    assert all_of_them() == before
    all_is_well()


def all_of_them() -> list[tuple[dict[str, Any], list[str]]]:
    """Each delivery, with its history."""
    return [(vars(one) | {"_state": None}, lines_of(one)) for one in Delivery.objects.order_by("pk")]


def test_where_nothing_was_sent_it_stays_pending(people: Cast, books: Destination) -> None:
    told(people)
    assert tried(TryEnd.NOT_CONNECTED) == "PENDING"
    assert tried(TryEnd.NO_ANSWER) == "SENT"
    assert tried(TryEnd.NOT_CONNECTED) == "SENT"
    assert tried(TryEnd.RECEIVED) == "ACKED"
    all_is_well()


def test_a_fault_of_our_own_uses_up_no_try_and_is_not_held_against_the_destination(
    people: Cast, books: Destination
) -> None:
    told(people)
    for _ in range(2 * MOST_TRIES):
        assert tried(TryEnd.NOT_SENT, detail="no secret") == "PENDING"
    books.refresh_from_db()
    assert (books.failures, books.paused_at) == (0, None)
    assert tried(TryEnd.RECEIVED) == "ACKED"
    assert not DeliveryTry.objects.filter(replay=True).exists()
    all_is_well()


def test_while_the_fault_is_our_own_a_destination_is_asked_seldom(people: Cast, books: Destination) -> None:
    told(people, 3)
    (claim,) = claimed()
    ended(claim, TryEnd.NOT_SENT)
    assert claimed(9) == []


def test_an_address_that_must_not_be_dialled_is_not_tried_again(people: Cast, books: Destination) -> None:
    told(people)
    assert tried(TryEnd.BLOCKED) == "DEAD_LETTERED"
    assert Delivery.objects.get().dead_reason == "blocked_address"


@pytest.mark.parametrize(
    ("end", "asked", "least_s", "most_s"),
    [
        (TryEnd.THROTTLED, "120", 119, 121),
        (TryEnd.UNAVAILABLE, "999999999999", 35_990, 36_001),
        (TryEnd.UNAVAILABLE, "-5", 0, 5),
        (TryEnd.REFUSED, "120", 0, 5),
    ],
)
def test_retry_after_is_kept_within_limits(
    people: Cast, books: Destination, end: TryEnd, asked: str, least_s: float, most_s: float
) -> None:
    told(people)
    tried(end, answer_headers={"retry-after": asked})
    next_at = Delivery.objects.get().next_at
    assert next_at is not None
    assert least_s - 1 <= (next_at - database_clock()).total_seconds() <= most_s


# --- zombies ------------------------------------------------------------------------------------------------


def test_a_zombie_changes_nothing_but_its_own_try(people: Cast, books: Destination) -> None:
    told(people)
    (late,) = claimed()
    lease_over(Delivery.objects.get())
    (now,) = claimed()
    assert now.epoch == late.epoch + 1
    before = Delivery.objects.values().get()
    ended(late, TryEnd.UNAVAILABLE, status=503)
    assert Delivery.objects.values().get() == before
    assert list(DeliveryTry.objects.order_by("number").values_list("ended_as", flat=True)) == [
        "unavailable",
        None,
    ]
    assert ended(now, TryEnd.RECEIVED) == "ACKED"
    all_is_well()


def test_a_receipt_is_a_fact_also_where_a_zombie_brings_it(people: Cast, books: Destination) -> None:
    told(people)
    (late,) = claimed()
    lease_over(Delivery.objects.get())
    (now,) = claimed()
    assert ended(late, TryEnd.RECEIVED, status=200) == "ACKED"
    assert ended(now, TryEnd.UNAVAILABLE, status=503) == "ACKED"
    delivery = Delivery.objects.get()
    assert (delivery.acks.count(), delivery.next_at, lines_of(delivery)) == (1, None, ["acked"])
    all_is_well()


def test_a_zombie_and_its_successor_in_one_batch_are_both_recorded(people: Cast, books: Destination) -> None:
    told(people)
    (late,) = claimed()
    lease_over(Delivery.objects.get())
    (now,) = claimed()
    ends = [Ended(now, Posted(TryEnd.UNAVAILABLE)), Ended(late, Posted(TryEnd.NO_ANSWER))]
    durable(lambda: record_ends(ends))
    assert set(DeliveryTry.objects.values_list("ended_as", flat=True)) == {"unavailable", "no_answer"}
    all_is_well()


# --- acknowledgements ---------------------------------------------------------------------------------------


def test_an_explicit_consumer_is_asked_again_until_it_acknowledges(people: Cast, asking: Destination) -> None:
    (delivery,) = told(people)
    assert tried(TryEnd.RECEIVED) == "SENT"
    delivery.refresh_from_db()
    assert delivery.next_at is not None
    assert 50 < (delivery.next_at - database_clock()).total_seconds() <= 60
    assert tried(TryEnd.RECEIVED) == "SENT"
    assert ack(people, delivery) is False
    assert ack(people, delivery, duplicate=True) is True
    assert Delivery.objects.filter(state="ACKED", next_at=None).get() == delivery
    assert list(delivery.acks.order_by("pk").values_list("duplicate", flat=True)) == [False, True]
    all_is_well()


def test_never_acknowledged_is_a_dead_letter_after_the_last_deadline(
    people: Cast, asking: Destination
) -> None:
    (delivery,) = told(people)
    for _ in range(MOST_TRIES):
        assert tried(TryEnd.RECEIVED) == "SENT"
    assert deliver_once(pass_s=0).not_acknowledged == 0  # the deadline of the last one is not over
    make_due()
    assert claimed() == []
    assert deliver_once(pass_s=0).not_acknowledged == 1
    delivery.refresh_from_db()
    assert (delivery.state, delivery.dead_reason) == ("DEAD_LETTERED", "not_acknowledged")
    assert ack(people, delivery) is False
    delivery.refresh_from_db()
    assert delivery.state == "ACKED"
    all_is_well()


def test_an_ack_before_the_try_ended_or_began(people: Cast, asking: Destination) -> None:
    first, second = told(people, 2)
    claims = {claim.delivery_id: claim for claim in claimed(1)}
    ((delivery_id, claim),) = claims.items()
    waiting = second if delivery_id == first.pk else first
    ack(people, Delivery.objects.get(pk=delivery_id))
    ack(people, waiting)
    assert ended(claim, TryEnd.RECEIVED) == "ACKED"
    assert {delivery.acks.count() for delivery in (first, second)} == {1}
    make_due()
    assert claimed(9) == []
    all_is_well()


def test_acknowledged_while_a_retry_could_not_be_sent_it_is_not_sent_again(
    people: Cast, asking: Destination
) -> None:
    (delivery,) = told(people)
    assert tried(TryEnd.RECEIVED) == "SENT"
    make_due()
    (claim,) = claimed()
    ack(people, delivery)
    assert ended(claim, TryEnd.NOT_SENT, detail="no secret") == "ACKED"
    delivery.refresh_from_db()
    assert (delivery.next_at, delivery.held_at) == (None, None)
    all_is_well()


def test_a_copy_that_a_person_asked_for_is_sent_once_it_can_be(people: Cast, books: Destination) -> None:
    (delivery,) = told(people)
    tried(TryEnd.RECEIVED)
    redelivered(people, delivery)
    assert tried(TryEnd.NOT_SENT, detail="no secret") == "ACKED"
    assert tried(TryEnd.RECEIVED) == "ACKED"
    make_due()
    assert claimed() == []
    all_is_well()


def test_an_ack_frees_no_place_while_the_try_is_under_way(people: Cast) -> None:
    destination(people, URL, ack="explicit", most_at_once=1)
    told(people, 2)
    (claim,) = claimed(9)
    ack(people, Delivery.objects.get(pk=claim.delivery_id))
    assert claimed(9) == []
    ended(claim, TryEnd.RECEIVED)
    assert len(claimed(9)) == 1


def test_a_failed_copy_of_an_acked_one_is_no_acknowledgement(people: Cast, books: Destination) -> None:
    (delivery,) = told(people)
    tried(TryEnd.RECEIVED)
    redelivered(people, delivery)
    assert tried(TryEnd.UNAVAILABLE) == "ACKED"
    delivery.refresh_from_db()
    assert (delivery.acks.count(), delivery.next_at) == (1, None)
    assert list(delivery.sent_tries.order_by("number").values_list("replay", flat=True)) == [False, True]
    all_is_well()


# --- people, while a try is under way -----------------------------------------------------------------------


def test_given_up_while_under_way_it_stays_so(people: Cast, books: Destination) -> None:
    (delivery,) = told(people)
    (claim,) = claimed()
    durable(lambda: give_up(delivery_id=delivery.pk, by=people.operator, why="not wanted"))
    assert ended(claim, TryEnd.UNAVAILABLE) == "DEAD_LETTERED"
    delivery.refresh_from_db()
    assert (delivery.next_at, delivery.held_at, lines_of(delivery)) == (None, None, ["dead_lettered"])
    all_is_well()


def test_given_up_while_under_way_and_received_it_is_acked(people: Cast, books: Destination) -> None:
    (delivery,) = told(people)
    (claim,) = claimed()
    durable(lambda: give_up(delivery_id=delivery.pk, by=people.operator, why="not wanted"))
    assert ended(claim, TryEnd.RECEIVED) == "ACKED"
    all_is_well()


def test_asked_for_again_while_under_way_it_is_tried_again(people: Cast, books: Destination) -> None:
    (delivery,) = told(people)
    tried(TryEnd.RECEIVED)
    redelivered(people, delivery)
    (claim,) = claimed()
    redelivered(people, delivery)
    assert claimed() == []
    ended(claim, TryEnd.RECEIVED)
    (again,) = claimed()
    ended(again, TryEnd.RECEIVED)
    assert claimed() == []
    all_is_well()


def test_given_up_and_asked_for_again_while_under_way(people: Cast, books: Destination) -> None:
    (delivery,) = told(people)
    (claim,) = claimed()
    durable(lambda: give_up(delivery_id=delivery.pk, by=people.operator, why="not wanted"))
    redelivered(people, delivery)
    assert ended(claim, TryEnd.NO_ANSWER) == "SENT"
    assert len(claimed()) == 1
    all_is_well()


def test_a_dead_letter_begins_its_schedule_anew(people: Cast, books: Destination) -> None:
    told(people)
    dead = used_up()
    redelivered(people, dead)
    Destination.objects.update(paused_at=None, failing_since=None)
    assert [tried(TryEnd.UNAVAILABLE) for _ in range(MOST_TRIES)] == ["SENT"] * 7 + ["DEAD_LETTERED"]
    dead.refresh_from_db()
    assert dead.tries == 2 * MOST_TRIES
    all_is_well()
