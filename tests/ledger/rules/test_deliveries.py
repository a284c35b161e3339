"""What the end of a try means, when a destination rests, and the fold of a delivery's history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.deliveries import (
    FAILURES_BEFORE_REST,
    MOST_TRIES,
    NOTHING_SENT,
    DeadReason,
    Follows,
    Line,
    TryEnd,
    TryFacts,
    after_try,
    end_of,
    has_only_failed,
    rest_s,
    retry_after_s,
    state_after,
)
from ledger.rules.states import DELIVERY_MOVES, DeliveryState

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
WAITING = st.sampled_from([DeliveryState.PENDING, DeliveryState.SENT])
ENDS = st.sampled_from(list(TryEnd))
ROLLS = st.floats(0, 1, exclude_max=True)


def facts(
    state: DeliveryState = DeliveryState.PENDING,
    tries: int = 1,
    ack: float | None = None,
    replay: bool = False,
) -> TryFacts:
    return TryFacts(state=state, tries=tries, ack_deadline_s=ack, replay=replay)


@pytest.mark.parametrize(
    ("status", "end"),
    [
        (199, TryEnd.REFUSED),
        (200, TryEnd.RECEIVED),
        (204, TryEnd.RECEIVED),
        (299, TryEnd.RECEIVED),
        (300, TryEnd.REDIRECT),
        (301, TryEnd.REDIRECT),
        (308, TryEnd.REDIRECT),
        (400, TryEnd.REFUSED),
        (404, TryEnd.REFUSED),
        (410, TryEnd.GONE),
        (429, TryEnd.THROTTLED),
        (500, TryEnd.UNAVAILABLE),
        (503, TryEnd.UNAVAILABLE),
    ],
)
def test_only_2xx_is_receipt(status: int, end: TryEnd) -> None:
    assert end_of(status) is end


@given(end=ENDS, tries=st.integers(0, MOST_TRIES), roll=ROLLS, replay=st.booleans())
def test_acked_stays_acked_and_gets_a_further_try_only_where_the_copy_a_person_asked_for_was_not_sent(
    end: TryEnd, tries: int, roll: float, replay: bool
) -> None:
    known = facts(DeliveryState.ACKED, tries, replay=replay)
    follows = after_try(known, end, retry_after_s=None, roll=roll)
    assert follows.state is DeliveryState.ACKED
    assert follows.acknowledged is (end is TryEnd.RECEIVED)
    assert (follows.wait_s is not None) is (end is TryEnd.NOT_SENT and replay)


@given(end=ENDS, tries=st.integers(0, 2 * MOST_TRIES), roll=ROLLS)
def test_a_dead_letter_stays_one_unless_it_was_received(end: TryEnd, tries: int, roll: float) -> None:
    follows = after_try(facts(DeliveryState.DEAD_LETTERED, tries), end, retry_after_s=9.0, roll=roll)
    received = Follows(DeliveryState.ACKED, acknowledged=True)
    assert follows == (received if end is TryEnd.RECEIVED else Follows(DeliveryState.DEAD_LETTERED))


@given(state=WAITING, end=ENDS, tries=st.integers(1, MOST_TRIES), roll=ROLLS, explicit=st.booleans())
def test_every_end_leads_somewhere_legal(
    state: DeliveryState, end: TryEnd, tries: int, roll: float, explicit: bool
) -> None:
    """It is due again, or held, or ended with a reason; and the move is one of the table's."""
    known = facts(state, tries, 60.0 if explicit else None)
    follows = after_try(known, end, retry_after_s=None, roll=roll)
    assert follows.state is state or (state, follows.state) in DELIVERY_MOVES
    ways = [
        follows.wait_s is not None,
        follows.held,
        follows.dead_reason is not None,
        follows.state is DeliveryState.ACKED,
    ]
    assert ways.count(True) == 1
    if end in NOTHING_SENT and follows.dead_reason is None:
        assert follows.state is state


def test_the_last_try_ends_it() -> None:
    last = after_try(facts(tries=MOST_TRIES), TryEnd.UNAVAILABLE, retry_after_s=None, roll=0.5)
    assert last == Follows(DeliveryState.DEAD_LETTERED, dead_reason=DeadReason.TRIES_USED_UP)


def test_a_blocked_address_is_not_tried_again() -> None:
    blocked = after_try(facts(), TryEnd.BLOCKED, retry_after_s=None, roll=0.5)
    assert blocked.dead_reason is DeadReason.BLOCKED_ADDRESS


def test_receipt_is_no_acknowledgement_where_that_is_a_call_of_its_own() -> None:
    received = after_try(facts(ack=300.0), TryEnd.RECEIVED, retry_after_s=None, roll=0.5)
    assert received == Follows(DeliveryState.SENT, wait_s=300.0)


@given(asked=st.floats(0, 36_000), roll=ROLLS, end=st.sampled_from([TryEnd.THROTTLED, TryEnd.UNAVAILABLE]))
def test_retry_after_is_a_floor(asked: float, roll: float, end: TryEnd) -> None:
    follows = after_try(facts(tries=2), end, retry_after_s=asked, roll=roll)
    assert follows.wait_s is not None
    assert follows.wait_s >= asked


@pytest.mark.parametrize(
    ("text", "wanted_s"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("99999999999999", 36_000.0),
        ("Sun, 29 Nov 2026 12:01:00 GMT", 60.0),
        ("Sun, 29 Nov 2026 11:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 36_000.0),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("٧", None),
        ("Sun, 99 Nov 2026 12:01:00 GMT", None),
        ("Sun, 29 Nov 2026 12:01:00", None),
    ],
)
def test_retry_after_in_both_forms(text: str, wanted_s: float | None) -> None:
    assert retry_after_s(text, NOW) == wanted_s


@given(st.text(max_size=60))
def test_no_retry_after_is_an_error(text: str) -> None:
    asked = retry_after_s(text, NOW)
    assert asked is None or 0 <= asked <= 36_000


@given(st.integers(0, 10_000), ROLLS)
def test_a_rest_begins_after_some_failures_and_never_exceeds_five_minutes(failures: int, roll: float) -> None:
    rest = rest_s(failures, roll=roll)
    assert (rest > 0) == (failures >= FAILURES_BEFORE_REST)
    assert rest <= 300


def test_five_days_of_only_failures() -> None:
    assert not has_only_failed(None, NOW)
    assert not has_only_failed(NOW - timedelta(days=5) + timedelta(seconds=1), NOW)
    assert has_only_failed(NOW - timedelta(days=5), NOW)


@given(st.lists(st.sampled_from(list(Line)), max_size=8))
def test_the_fold_makes_only_legal_moves(lines: list[Line]) -> None:
    states = [state_after(lines[:count]) for count in range(len(lines) + 1)]
    for before, after in pairwise(states):
        if before is None:
            assert after is None
        else:
            assert after in {None, before} or (before, after) in DELIVERY_MOVES


def test_a_whole_life() -> None:
    given_up = [Line.SENT, Line.DEAD_LETTERED]
    assert state_after(given_up) is DeliveryState.DEAD_LETTERED
    assert state_after([*given_up, Line.REDELIVERED]) is DeliveryState.PENDING
    assert state_after([*given_up, Line.REDELIVERED, Line.ACKED]) is DeliveryState.ACKED
    assert state_after([*given_up, Line.ACKED, Line.REDELIVERED]) is DeliveryState.ACKED
    assert state_after([Line.ACKED, Line.SENT]) is None
