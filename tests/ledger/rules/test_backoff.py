"""Waits stay within their promised bounds for every roll."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.backoff import (
    DELIVERY_WAITS_S,
    backoff_s,
    delivery_wait_s,
    look_up_backoff_s,
    negative_spacing_s,
    probe_backoff_s,
    resend_backoff_s,
)

rolls = st.floats(0, 1, exclude_max=True)
tries = st.integers(0, 10**9)


@pytest.mark.parametrize(("made", "most"), [(0, 2), (1, 4), (2, 8), (3, 16), (4, 20), (10**12, 20)])
def test_full_jitter_is_a_part_of_a_doubling_wait(made: int, most: float) -> None:
    assert backoff_s(made, first_s=2, most_s=20, roll=0.0) == 0
    assert backoff_s(made, first_s=2, most_s=20, roll=0.5) == most / 2


@given(tries, rolls)
def test_every_wait_keeps_its_bounds(made: int, roll: float) -> None:
    assert 0 <= look_up_backoff_s(made, roll=roll) < 300
    assert 0 <= probe_backoff_s(made, roll=roll) < 30
    assert 5 <= resend_backoff_s(made, roll=roll) < 600


@given(st.integers(0, 80), rolls)
def test_one_more_try_never_waits_less_for_the_same_roll(made: int, roll: float) -> None:
    for wait_s in (look_up_backoff_s, probe_backoff_s, resend_backoff_s):
        assert wait_s(made, roll=roll) <= wait_s(made + 1, roll=roll)


def test_deliveries_follow_their_schedule_and_then_stop() -> None:
    schedule = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]
    assert list(DELIVERY_WAITS_S) == schedule
    assert [delivery_wait_s(made, roll=0.5) for made in range(9)] == [*(wait / 2 for wait in schedule), None]


def test_negatives_are_spaced_by_the_settle_window_but_never_more_than_five_seconds() -> None:
    assert [negative_spacing_s(settle) for settle in (0.05, 5.0, 30.0)] == [0.05, 5.0, 5.0]
