"""A clock for one client, so that a test says when time passes."""

from __future__ import annotations

from typing import Any

from ledger.client.io import BlockingIo
from tests.ledger.client.fake import ABOUT, Canned


class Clock:
    """Time that passes by pauses, and by answers that come late."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def await_pause(self, seconds: float) -> None:
        self.pause(seconds)

    def late(self, name: str, *, after_s: float) -> Canned:
        """An answer of a ledger that waited."""

        def pass_by() -> None:
            self.now += after_s

        return Canned(200, {**ABOUT, "directive": name}, {"Preference-Applied": "wait=30"}, first=pass_by)


def clock_of(ledger: Any) -> Clock:
    """The client, whichever twin it is, goes by this clock from now on."""
    clock = Clock()
    io = getattr(ledger, "_thing", ledger)._transport.io
    io._clock = lambda: clock.now
    io._sleep = clock.pause if isinstance(io, BlockingIo) else clock.await_pause
    return clock
