"""Not faster than a provider allows: one clock per host for all threads of this process."""

from __future__ import annotations

import threading
import time

_lock = threading.Lock()
_free_at: dict[str, float] = {}
_held_until: dict[str, float] = {}

USUAL_HOLD_S = 1.0
LONGEST_HOLD_S = 30.0
"""A provider may ask for more; it is asked again after this, so that its return is noticed."""


def pace(host: str, rate_per_s: float) -> None:
    """Wait for this host's next turn."""
    with _lock:
        now = time.monotonic()
        turn = max(now, _free_at.get(host, 0.0))
        _free_at[host] = turn + 1 / rate_per_s
    time.sleep(turn - now)


def turn_in_s(host: str) -> float:
    """How long until this host's next turn; 0 where it is now."""
    with _lock:
        return max(0.0, _free_at.get(host, 0.0) - time.monotonic())


def hold(account: str, retry_after: str) -> None:
    """Ask this account nothing for so long; `retry_after` is the header's text, seconds or anything else."""
    wanted_s = float(retry_after) if retry_after.isdecimal() and retry_after.isascii() else USUAL_HOLD_S
    with _lock:
        _held_until[account] = time.monotonic() + min(wanted_s, LONGEST_HOLD_S)


def held_for_s(account: str) -> float:
    """How much longer this account wants to be left alone; 0 where it does not."""
    with _lock:
        return max(0.0, _held_until.get(account, 0.0) - time.monotonic())
