"""People are called before a provider forgets a key, and to what a reachable provider leaves undecided."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from ledger import lifecycle
from ledger.models import Attempt, Event, ReviewItem
from ledger.queries.invariants import findings
from ledger.reconciliation import sweep_once
from ledger.rules.looked_up import LookedUpKind, Record
from ledger.rules.vocabulary import Escalation, EventKind
from ledger.transactions import database_clock, durable
from review import decisions
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

MAIL_WINDOW = timedelta(days=1)
WARNED = MAIL_WINDOW - timedelta(minutes=9)
RUNNING = Record(reference="re_1", content="same", state="in_progress", data={})


@pytest.fixture
def people() -> Cast:
    return cast()


def escalations(attempt: Attempt) -> list[Event]:
    return list(attempt.events.filter(kind=EventKind.ESCALATED).order_by("sequence"))


def causes(attempt: Attempt) -> list[str]:
    return [event.data["because"] for event in escalations(attempt)]


@pytest.mark.parametrize(
    ("minutes_left", "expected"),
    [(60, []), (11, []), (10, ["key_window_closing"]), (1, ["key_window_closing"])],
)
def test_once_before_the_window_closes(people: Cast, minutes_left: float, expected: list[str]) -> None:
    attempt = make.first_sent(make.unknown(people.key), MAIL_WINDOW - timedelta(minutes=minutes_left))
    assert [sweep_once().escalated for _ in range(3)] == [len(expected), 0, 0]
    assert causes(attempt) == expected
    item = make.item_of(attempt)
    assert (item.escalated_for, item.escalated_at is not None) == ("".join(expected), bool(expected))
    assert make.fresh(attempt).state == "UNKNOWN"
    assert list(findings()) == []


def test_the_event_says_what_is_lost_and_when(people: Cast) -> None:
    attempt = make.first_sent(make.unknown(people.key), WARNED)
    sweep_once()
    (event,) = escalations(attempt)
    assert attempt.key_first_sent_at is not None
    ends_at = str(attempt.key_first_sent_at + MAIL_WINDOW)
    item = make.item_of(attempt)
    assert event.data == {
        "item": item.pk,
        "because": "key_window_closing",
        "key_window_ends_at": ends_at,
        "generation": 1,
    }
    assert (event.actor_kind, event.at) == ("system", item.escalated_at)


def test_an_outage_of_the_provider_keeps_nobody_from_being_called(people: Cast) -> None:
    """Its age calls nobody while the provider is away: the key window does."""
    attempt = make.unknown(people.key)
    make.at(make.item_of(attempt), due_at=database_clock())
    make.looked_up(attempt, LookedUpKind.UNAVAILABLE)
    assert causes(attempt) == []
    make.first_sent(make.fresh(attempt), WARNED)
    sweep_once()
    assert causes(attempt) == ["key_window_closing"]


def test_age_calls_once_for_each_due_time(people: Cast) -> None:
    attempt = make.unknown(people.key)
    item = make.item_of(attempt)
    make.looked_up(attempt, LookedUpKind.FOUND, RUNNING)
    assert causes(attempt) == []
    for _ in range(2):
        make.at(item, due_at=database_clock())
        for _ in range(2):
            make.looked_up(attempt, LookedUpKind.FOUND, RUNNING)
    assert causes(attempt) == ["overdue", "overdue"]
    assert make.item_of(attempt).escalated_for == Escalation.OVERDUE


def test_nobody_swept_and_it_is_told_all_the_same(people: Cast) -> None:
    attempt = make.first_sent(make.unknown(people.key), MAIL_WINDOW + timedelta(hours=1))
    assert sweep_once().escalated == 1
    assert causes(attempt) == ["key_window_closing"]


def test_a_window_that_was_over_before_the_item_was_known_of_is_no_news(people: Cast) -> None:
    """As of an item that an older ledger opened: it is looked at once."""
    attempt = make.first_sent(make.unknown(people.key), MAIL_WINDOW + timedelta(hours=1))
    ReviewItem.objects.update(escalate_at=database_clock())
    assert sweep_once().escalated == 0
    assert make.item_of(attempt).escalate_at is None


def test_an_item_that_is_looked_at_too_early_is_looked_at_again_in_time(people: Cast) -> None:
    attempt = make.unknown(people.key)
    expected = make.item_of(attempt).escalate_at
    ReviewItem.objects.update(escalate_at=database_clock())
    assert sweep_once().escalated == 0
    assert make.item_of(attempt).escalate_at == expected


def reject(people: Cast, attempt: Attempt) -> None:
    item = make.item_of(attempt)
    decisions.reject(people.approver, item.pk, why="no", what="not_known")


def cancel(people: Cast, attempt: Attempt) -> None:
    durable(
        lambda: lifecycle.cancel_operation(key=people.key, operation_id=attempt.operation_id, reason="no")
    )


def confirm(people: Cast, attempt: Attempt) -> None:
    make.reported(people.key, attempt, "succeeded", result_ref="re_1")


@pytest.mark.parametrize("end", [reject, cancel, confirm])
def test_what_is_never_sent_again_loses_nothing(people: Cast, end: Callable[[Cast, Attempt], None]) -> None:
    attempt = make.unknown(people.key)
    end(people, attempt)
    make.first_sent(make.fresh(attempt), WARNED)
    ReviewItem.objects.update(escalate_at=database_clock())
    assert sweep_once().escalated == 0
    assert causes(attempt) == []


def test_without_a_window_no_clock_is_set(people: Cast) -> None:
    for attempt in (make.for_a_person(people.key), make.held(people.key)):
        assert make.item_of(attempt).escalate_at is None
