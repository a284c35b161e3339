"""Not faster than a provider allows: one clock per host for all who ask it.

Alone a process keeps the clocks itself. Where several may ask at once, whoever asks on their behalf brings a
clock that they share (`shared`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from ledger.dialling import OutOfTime, remaining_s

_lock = threading.Lock()
_free_at: dict[str, float] = {}

USUAL_HOLD_S = 1.0
LONGEST_HOLD_S = 30.0
"""A provider may ask for more; it is asked again after this, so that its return is noticed."""


class Turns(Protocol):
    """Whose turn it is, by name: of a host, and of an account that wants to be left alone."""

    def take(self, name: str, spacing_s: float, within_s: float) -> float | None:
        """Take the next turn, the one after it is so much later; seconds until it comes. None, and nothing
        is taken, where it does not come in time."""

    def next_in_s(self, *names: str) -> float:
        """Seconds until it is the turn of all of these; 0 where it is now."""

    def hold(self, name: str, seconds: float) -> None:
        """No turn for so long from now."""


class TurnsOfThisProcess:
    """The clocks of this process alone."""

    def take(self, name: str, spacing_s: float, within_s: float) -> float | None:
        with _lock:
            now = time.monotonic()
            turn = max(now, _free_at.get(name, 0.0))
            if turn - now > within_s:
                return None
            _free_at[name] = turn + spacing_s
            return turn - now

    def next_in_s(self, *names: str) -> float:
        with _lock:
            return max(0.0, *(_free_at.get(name, 0.0) - time.monotonic() for name in names))

    def hold(self, name: str, seconds: float) -> None:
        with _lock:
            _free_at[name] = max(_free_at.get(name, 0.0), time.monotonic() + seconds)


_turns: ContextVar[Turns] = ContextVar("provider_turns", default=TurnsOfThisProcess())  # noqa: B039


@contextmanager
def shared(turns: Turns) -> Iterator[None]:
    """Inside, these clocks count: others keep to them too."""
    token = _turns.set(turns)
    try:
        yield
    finally:
        _turns.reset(token)


def pace(host: str, rate_per_s: float) -> bool:
    """Wait for this host's next turn. Was there anything to wait for? Raises OutOfTime at once where it comes
    after the time there is for everything, and leaves it to others."""
    wait_s = _turns.get().take(host, 1 / rate_per_s, remaining_s(error=OutOfTime))
    if wait_s is None:
        raise OutOfTime("its next turn comes after the time for the whole request")
    time.sleep(wait_s)
    return wait_s > 0


def hold(account: str, retry_after: str) -> None:
    """Ask this account nothing for so long; `retry_after` is the header's text, seconds or anything else."""
    wanted_s = float(retry_after) if retry_after.isdecimal() and retry_after.isascii() else USUAL_HOLD_S
    _turns.get().hold(account, min(wanted_s, LONGEST_HOLD_S))


def held_for_s(*names: str) -> float:
    """How much longer these hosts and accounts are to be left alone; 0 where all may be asked now."""
    return _turns.get().next_in_s(*names)
