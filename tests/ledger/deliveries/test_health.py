"""What ends of tries say of a destination: it rests or is paused, and what waits for it is held meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ledger.deliveries import deliver_once, pause, resume
from ledger.deliveries.holding import follow_pauses
from ledger.events import SYSTEM
from ledger.models import Delivery, Destination, DestinationChange
from ledger.rules.deliveries import MOST_TRIES, PauseReason, TryEnd
from ledger.transactions import database_clock, durable
from tests.ledger.deliveries.helping import all_is_well, claimed, ended, make_due, rested, told, tried
from tests.support.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def test_gone_holds_everything_until_a_person_resumes(people: Cast, books: Destination) -> None:
    told(people, 3)
    assert tried(TryEnd.GONE, status=410) == "SENT"
    deliver_once(pass_s=0)
    books.refresh_from_db()
    assert (books.paused_because, Delivery.objects.filter(next_at=None).count()) == ("gone", 3)
    late = told(people)[0]
    assert late.held_at is not None
    durable(lambda: resume(books, actor=SYSTEM, now=database_clock()))
    assert sum(follow_pauses()) == 4
    assert len(claimed(9)) == 4
    all_is_well()


def test_gone_at_the_last_try_is_a_dead_letter(people: Cast, books: Destination) -> None:
    told(people)
    for _ in range(MOST_TRIES - 1):
        tried(TryEnd.UNAVAILABLE)
    assert tried(TryEnd.GONE) == "DEAD_LETTERED"
    assert Delivery.objects.get().dead_reason == "tries_used_up"


def test_paused_while_a_try_is_under_way_it_is_held_afterwards(people: Cast, books: Destination) -> None:
    told(people)
    (claim,) = claimed()
    durable(lambda: pause(books, PauseReason.PERSON, actor=SYSTEM, now=database_clock()))
    assert ended(claim, TryEnd.UNAVAILABLE) == "SENT"
    delivery = Delivery.objects.get()
    assert delivery.held_at is not None
    assert delivery.next_at is None


def test_five_failures_open_the_breaker_and_one_probe_at_a_time_closes_it(
    people: Cast, books: Destination
) -> None:
    told(people, 9)
    for claim in [*claimed(9), *claimed(9)]:
        ended(claim, TryEnd.UNAVAILABLE)
    (fifth, *_others) = claimed(9)
    ended(fifth, TryEnd.UNAVAILABLE)
    books.refresh_from_db()
    assert books.failures == 5
    assert books.rests_until is not None
    for other in _others:
        ended(other, TryEnd.NOT_CONNECTED)
    make_due()
    assert claimed(9) == []
    rested()
    (probe,) = claimed(9)
    assert claimed(9) == []
    ended(probe, TryEnd.RECEIVED)
    assert len(claimed(9)) == 4
    assert Destination.objects.filter(failures=0, failing_since=None, rests_until=None).exists()


def test_after_five_days_of_only_failures_it_is_paused_once(people: Cast, books: Destination) -> None:
    told(people, 2)
    tried(TryEnd.UNAVAILABLE)
    books.refresh_from_db()
    assert books.paused_at is None
    Destination.objects.update(failing_since=database_clock() - timedelta(days=5))
    tried(TryEnd.NOT_CONNECTED)
    books.refresh_from_db()
    assert books.paused_because == "only_failures"
    assert DestinationChange.objects.filter(kind="paused").count() == 1
    all_is_well()
