"""How long to wait before trying again. The roll of the dice, in [0, 1), is passed in."""

from __future__ import annotations

# Asking again about one attempt.
LOOK_UP_FIRST_S = 2.0
LOOK_UP_MOST_S = 300.0

# Asking a provider again that could not be reached: a probe at least every 30 s.
PROBE_LEAST_S = 0.5
PROBE_FIRST_S = 1.0
PROBE_MOST_S = 30.0

# Sending again under the same key.
RESEND_FIRST_S = 5.0
RESEND_MOST_S = 600.0

# Tries of one delivery; after the last one it is DEAD_LETTERED.
DELIVERY_WAITS_S = (0.0, 5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 36_000.0)

_MOST_SPACING_S = 5.0
_MOST_DOUBLINGS = 60


def backoff_s(tries: int, *, first_s: float, most_s: float, roll: float) -> float:
    """Full jitter: anything from nothing to `first_s` doubled per try, at most `most_s`."""
    return roll * _ceiling_s(tries, first_s, most_s)


def look_up_backoff_s(tries: int, *, roll: float) -> float:
    """Before the next look-up of one attempt, after `tries` answers that decided nothing."""
    return backoff_s(tries, first_s=LOOK_UP_FIRST_S, most_s=LOOK_UP_MOST_S, roll=roll)


def probe_backoff_s(tries: int, *, roll: float) -> float:
    """Before a provider that could not be reached is asked again: never at once, and never above 30 s."""
    return max(PROBE_LEAST_S, backoff_s(tries, first_s=PROBE_FIRST_S, most_s=PROBE_MOST_S, roll=roll))


def resend_backoff_s(tries: int, *, roll: float) -> float:
    """Before an attempt proven to have had no effect may be sent again: 5 s to 10 min, never sooner."""
    most_s = _ceiling_s(tries + 1, RESEND_FIRST_S, RESEND_MOST_S)
    return RESEND_FIRST_S + roll * (most_s - RESEND_FIRST_S)


def delivery_wait_s(tries: int, *, roll: float) -> float | None:
    """Before a delivery's next try when `tries` were made; None: no more tries, DEAD_LETTERED."""
    return roll * DELIVERY_WAITS_S[tries] if tries < len(DELIVERY_WAITS_S) else None


def negative_spacing_s(settle_s: float) -> float:
    """How far apart two answers *absent* must be to count as two."""
    return min(settle_s, _MOST_SPACING_S)


def _ceiling_s(tries: int, first_s: float, most_s: float) -> float:
    return min(most_s, first_s * 2.0 ** min(max(tries, 0), _MOST_DOUBLINGS))
