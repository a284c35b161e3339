"""Who may send what: each row once, to no destination more than it has places, none delayed by another."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import F

from ledger import transactions
from ledger.deliveries import deliver_once, recording, stop_sending
from ledger.deliveries import sender as sending
from ledger.deliveries.claiming import DESTINATIONS_AT_ONCE, _claim, claim_due, renew
from ledger.models import Delivery, DeliveryTry, Destination
from ledger.rules.deliveries import TryEnd
from ledger.transactions import database_clock
from tests.ledger.deliveries.helping import URL, all_is_well, claimed, destination, ended, more_waiting, told
from tests.support.cast import Cast
from tests.support.consumer import ConsumerProcess
from tests.support.processes import wait_until
from tests.support.races import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def test_many_deliverers_at_once_take_each_row_once_and_keep_to_the_places(people: Cast) -> None:
    for name, places in (("a", 3), ("b", 1), ("c", 5)):
        destination(people, URL, name=name, most_at_once=places)
    told(people, 12)
    for _ in range(4):
        taken = [claim for claims in at_once(*[lambda: claim_due(at_most=16)] * 4) for claim in claims]
        ids = [claim.delivery_id for claim in taken]
        assert len(ids) == len(set(ids))
        counts = Counter(claim.destination_id for claim in taken)
        for place in Destination.objects.all():
            assert counts[place.pk] <= place.most_at_once
            assert place.deliveries.filter(lease_until__gt=database_clock()).count() <= place.most_at_once
        assert [claim for claims in at_once(*[lambda: claim_due(at_most=16)] * 2) for claim in claims] == []
        for claim in taken:
            ended(claim, TryEnd.RECEIVED)
    assert not DeliveryTry.objects.filter(number__gt=1).exists()
    all_is_well()


def test_a_claim_leaves_the_other_destinations_to_others(people: Cast) -> None:
    for number in range(DESTINATIONS_AT_ONCE + 4):
        destination(people, URL, name=f"d{number}")
    told(people)
    with transaction.atomic():
        first = _claim(64, start_by_s=0)
        (second,) = at_once(lambda: claim_due(at_most=64))
    assert (len(first), len(second)) == (DESTINATIONS_AT_ONCE, 4)
    assert not {one.destination_id for one in first} & {one.destination_id for one in second}


@pytest.mark.parametrize("for_long", [False, True], ids=["for a moment", "for long"])
def test_what_another_claim_holds_is_asked_for_again(
    people: Cast, monkeypatch: pytest.MonkeyPatch, for_long: bool
) -> None:
    """Else a worker that begins just then would take all that is due for done."""
    destination(people, URL)
    told(people)
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            list(Destination.objects.select_for_update(no_key=True))
            held.set()
            over.wait(30)
        connection.close()

    def wait(_: float) -> None:
        if not for_long:
            over.set()
            other.join()

    monkeypatch.setattr(transactions, "time", SimpleNamespace(sleep=wait, monotonic=time.monotonic))
    other = threading.Thread(target=hold)
    other.start()
    held.wait(30)
    assert len(claim_due(at_most=4)) == (0 if for_long else 1)
    over.set()
    other.join()


def test_two_who_record_failures_of_the_same_destinations_do_not_wait_in_a_circle(people: Cast) -> None:
    for name in "abcdef":
        destination(people, URL, name=name)
    told(people, 4)
    claims = claimed(24)
    assert len(claims) == 24
    at_once(*[lambda one=claim: ended(one, TryEnd.UNAVAILABLE) for claim in claims[:8]])
    all_is_well()


def test_what_a_dead_destination_left_waiting_delays_no_other(people: Cast) -> None:
    dead, _ = destination(
        people, URL, name="dead", failures=9, rests_until=database_clock() + timedelta(hours=1)
    )
    alive, _ = destination(people, URL, name="alive")
    (first, second) = told(people)
    more_waiting(first if first.destination_id == dead.pk else second, 3_000)
    assert [claim.destination_id for claim in claimed(16)] == [alive.pk]
    Destination.objects.update(rests_until=None)
    assert [claim.destination_id for claim in claimed(16)] == [dead.pk]  # one probe, nothing more
    assert claimed(16) == []


def test_a_thousand_destinations_are_all_served(people: Cast) -> None:
    destination(people, URL)
    Destination.objects.bulk_create(
        Destination(tenant=people.tenant, name=f"d{number}", url=URL, ack="response") for number in range(999)
    )
    told(people)
    seen: set[str] = set()
    while claims := claimed(100):
        seen |= {claim.destination_id for claim in claims}
    assert len(seen) == 1_000


def test_a_hanging_consumer_delays_no_other(
    people: Cast, consumer: ConsumerProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Without waiting for the end of what hangs, a pass serves the others, and so does the next one."""
    with ConsumerProcess(tmp_path_factory.mktemp("hangs")) as hanging:
        hanging.answer(200, how="hang")
        destination(people, hanging, name="hangs")
        destination(people, consumer, name="books")
        told(people, 10)
        for _ in range(2):
            deliver_once(pass_s=1, drain=False)
        wait_until(lambda: acked("books") == 10, within_s=15, what="the other one has everything")
        told(people, 1)
        deliver_once(pass_s=1, drain=False)
        wait_until(lambda: acked("books") == 11, within_s=15, what="and what came later")
        assert len(hanging.received()) <= 4
        assert acked("hangs") == 0
        hanging.kill()  # what hangs is reset, and ends
    stop_sending()
    all_is_well()


def acked(name: str) -> int:
    return Delivery.objects.filter(destination__name=name, state="ACKED").count()


def test_each_end_is_told_by_one_pass_whoever_waits_for_it(people: Cast, consumer: ConsumerProcess) -> None:
    destination(people, consumer)
    consumer.answer(200, wait_s=0.5)
    told(people, 6)
    first = deliver_once(pass_s=0, drain=False)
    wait_until(lambda: acked("books") == 4, within_s=15, what="four places' answers came")
    second = deliver_once(drain=True)
    third = deliver_once()
    assert first.tried + second.tried + third.tried == 6
    assert first.states + second.states + third.states == {"ACKED": 6}
    assert len(consumer.received()) == 6
    all_is_well()


def test_many_passes_at_once_in_one_process_send_each_once(people: Cast, consumer: ConsumerProcess) -> None:
    destination(people, consumer)
    told(people, 12)

    def one() -> Any:
        try:
            return deliver_once(pass_s=60)
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        reports = [done.result() for done in [pool.submit(one) for _ in range(3)]]
    assert sum(report.tried for report in reports) == 12
    assert sum((report.states for report in reports), Counter()) == {"ACKED": 12}
    assert len({one.webhook_id for one in consumer.received()}) == len(consumer.received()) == 12


def test_ends_that_cannot_be_recorded_are_sent_again_and_nobody_hangs(
    people: Cast, consumer: ConsumerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is away just when the answers have come."""
    destination(people, consumer)
    told(people, 3)
    honest = recording.record_ends

    def away(*_: object) -> None:
        raise OperationalError("the connection was lost")

    monkeypatch.setattr(sending, "record_ends", away)
    report = deliver_once()
    assert (report.tried, report.states, acked("books")) == (3, {}, 0)
    assert sending.this_process().is_idle
    assert deliver_once().tried == 0  # until the lease is over
    monkeypatch.setattr(sending, "record_ends", honest)
    Delivery.objects.update(lease_until=database_clock() - timedelta(seconds=1))
    assert deliver_once().states == {"ACKED": 3}
    assert Counter(one.webhook_id for one in consumer.received()).most_common(1)[0][1] == 2
    assert len({one.webhook_id for one in consumer.received()}) == 3
    all_is_well()


def test_one_end_that_cannot_be_stored_harms_no_other(
    people: Cast, consumer: ConsumerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination(people, consumer)
    cursed, *others = told(people, 3)
    honest, together = recording.record_ends, threading.Event()

    def fails(ends: Any) -> Any:
        together.set()
        if any(one.claim.delivery_id == cursed.pk for one in ends):
            raise ValueError("it cannot be stored")
        return honest(ends)

    monkeypatch.setattr(sending, "record_ends", fails)
    deliver_once()
    assert together.is_set()
    assert set(Delivery.objects.filter(state="ACKED")) == set(others)
    monkeypatch.undo()
    all_is_well()


def test_an_answer_with_what_the_database_cannot_keep_is_recorded(people: Cast, books: Destination) -> None:
    told(people)
    (claim,) = claimed()
    ended(
        claim,
        TryEnd.UNAVAILABLE,
        answer_headers={"x\0": "\ud800" * 600, **{f"h{number}": "v" for number in range(100)}},
        answer=b"\0" * 70_000,
        detail="\0\udcff" * 2_000,
    )
    kept = DeliveryTry.objects.get()
    assert kept.answer_head is not None
    assert (len(bytes(kept.answer_head)), kept.answer_cut, kept.ended_as) == (4_096, True, "unavailable")


def test_a_lease_is_renewed_while_its_try_goes_on_and_no_longer(
    people: Cast, consumer: ConsumerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it can be short: a sender that died keeps its destination's places for no longer than that."""
    destination(people, consumer)
    consumer.answer(200, how="hang")
    (delivery,) = told(people)
    monkeypatch.setattr(sending, "RENEWED_EVERY_S", 0.1)
    deliver_once(pass_s=0, drain=False)
    delivery.refresh_from_db()
    first = delivery.lease_until
    assert first is not None
    renewed = Delivery.objects.filter(pk=delivery.pk, lease_until__gt=first + timedelta(milliseconds=200))
    wait_until(renewed.exists, within_s=15, what="the lease is renewed")
    Delivery.objects.update(lease_epoch=F("lease_epoch") + 1, lease_until=first)  # somebody else took it
    (claim,) = [claim for claim, _ in sending.this_process()._under_way.values()]
    renew([claim])
    delivery.refresh_from_db()
    assert delivery.lease_until == first
    consumer.kill()  # what hangs is reset, and ends
    stop_sending()
    consumer.start()
