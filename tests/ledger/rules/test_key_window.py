"""The clock of a provider key, against a few sentences about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.key_window import WARNING_S, KeyWindow, Protection, key_window

FIRST = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR_S = 3_600.0


def at(seconds: float, *, key_ttl_s: float = HOUR_S, idempotent: bool = True) -> KeyWindow:
    """So long after the first send."""
    return key_window(
        idempotent=idempotent,
        key_ttl_s=key_ttl_s,
        first_sent_at=FIRST,
        generation=1,
        now=FIRST + timedelta(seconds=seconds),
    )


@pytest.mark.parametrize(
    ("seconds", "protection"),
    [
        (0, Protection.OPEN),
        (HOUR_S - WARNING_S - 0.001, Protection.OPEN),
        (HOUR_S - WARNING_S, Protection.CLOSING),
        (HOUR_S - 0.001, Protection.CLOSING),
        (HOUR_S, Protection.OVER),
        (10 * HOUR_S, Protection.OVER),
    ],
)
def test_open_then_closing_then_over(seconds: float, protection: Protection) -> None:
    window = at(seconds)
    assert window.protection is protection
    assert window.protects is (protection is not Protection.OVER)
    assert window.ends_at == FIRST + timedelta(hours=1)


def test_a_short_window_is_closing_in_its_second_half_only() -> None:
    assert at(299, key_ttl_s=600).protection is Protection.OPEN
    assert at(300, key_ttl_s=600).protection is Protection.CLOSING
    assert at(0, key_ttl_s=0.05).protection is Protection.OPEN


@pytest.mark.parametrize(("idempotent", "key_ttl_s"), [(False, HOUR_S), (True, 0.0), (False, 0.0)])
def test_where_no_keys_are_kept_nothing_ever_protects(*, idempotent: bool, key_ttl_s: float) -> None:
    window = at(0, key_ttl_s=key_ttl_s, idempotent=idempotent)
    assert (window.protection, window.ends_at, window.closes_from) == (Protection.NO_KEYS, None, None)
    assert not window.protects


def test_before_the_first_send_no_clock_runs() -> None:
    window = key_window(idempotent=True, key_ttl_s=HOUR_S, first_sent_at=None, generation=2, now=FIRST)
    assert (window.protection, window.ends_at, window.generation) == (Protection.NOT_SENT, None, 2)


@given(st.floats(0.05, 1e7), st.floats(-10, 2e7), st.floats(0, 1e7))
def test_it_only_runs_on(key_ttl_s: float, seconds: float, later: float) -> None:
    """Whoever looks later sees the same ends, and never more protection."""
    order = (Protection.OPEN, Protection.CLOSING, Protection.OVER)
    before, after = at(seconds, key_ttl_s=key_ttl_s), at(seconds + later, key_ttl_s=key_ttl_s)
    assert order.index(before.protection) <= order.index(after.protection)
    assert (before.closes_from, before.ends_at) == (after.closes_from, after.ends_at)
    assert before.closes_from is not None
    assert before.ends_at is not None
    assert FIRST <= before.closes_from <= before.ends_at
    assert before.ends_at - before.closes_from <= timedelta(seconds=WARNING_S)
