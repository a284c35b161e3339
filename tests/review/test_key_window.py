"""The clock of a provider key as people see it: on the item, in the queue's order, and where they approve."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ledger.models import Attempt
from ledger.reconciliation import sweep_once
from ledger.rules.key_window import Protection
from ledger.rules.vocabulary import DecisionKind, Escalation
from review.queries import QueueFilters, queue
from tests.review.pages import action, page_of
from tests.support import make
from tests.support.cast import Cast

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def consequence(people: Cast, attempt: Attempt) -> str:
    return action(page_of(people.approver, attempt), DecisionKind.APPROVE).consequence


@pytest.mark.parametrize(
    ("ago", "says", "never"),
    [
        (HOUR, "the provider honours keys for 24 h, 23 h left. Your", "nothing prevents"),
        (DAY - 2 * HOUR, "2 h left: sent after ", "forgot"),
        (DAY - 2 * HOUR, "UTC it may be a second effect, and nothing prevents it", "forgot"),
        (
            DAY + 3 * HOUR,
            "forgot this one 3 h ago: if the earlier send did happen, this is a second effect, and nothing",
            "left",
        ),
    ],
)
def test_approving_says_what_protects_and_what_no_longer_does(
    people: Cast, ago: timedelta, says: str, never: str
) -> None:
    """A vote for a mail lives four hours: in that time two hours of protection may be over."""
    said = consequence(people, make.first_sent(make.unknown(people.key), ago - MINUTE))
    assert says in said
    assert never not in said


def test_approving_says_where_nothing_ever_protected(people: Cast) -> None:
    assert "honours no keys, so nothing protects" in consequence(people, make.for_a_person(people.key))


def test_the_item_and_its_row_show_the_same_clock(people: Cast) -> None:
    attempt = make.first_sent(make.unknown(people.key), DAY - 9 * MINUTE)
    sweep_once()
    page, (row,) = page_of(people.viewer, attempt), queue(people.viewer, QueueFilters()).rows
    assert attempt.key_first_sent_at is not None
    for shown in (page.evidence.key_window, row.key_window):
        assert (shown.protection, shown.ends_at) == (Protection.CLOSING, attempt.key_first_sent_at + DAY)
    assert row.escalated == page.escalated
    assert page.escalated is not None
    assert page.escalated.because is Escalation.KEY_WINDOW_CLOSING
    assert page.escalated.words == "the provider is about to forget the key"


def test_what_closes_next_comes_first_and_what_is_over_presses_nobody(people: Cast) -> None:
    ages = (HOUR, DAY + HOUR, DAY - MINUTE, 20 * HOUR)
    attempts = [make.first_sent(make.unknown(people.key), ago) for ago in ages]
    without = make.for_a_person(people.key)
    shown = [row.attempt_id for row in queue(people.viewer, QueueFilters()).rows]
    fresh, over, closing, later = (attempt.pk for attempt in attempts)
    assert shown == [closing, later, fresh, over, without.pk]
