"""Let time pass until there is something to do about an operation: a person decided, or the ledger knows.

The ledger is asked to answer late (`Prefer: wait`). One that does not, because it is busy or old, is asked
again after a pause that grows.
"""

import random
from collections.abc import Awaitable, Callable

from ledger.client.answers import Answer
from ledger.client.errors import LedgerError, LedgerUnavailable, PendingReview
from ledger.client.io import Io
from ledger.rules.backoff import backoff_s

MOST_AT_ONCE_S = 30.0
AT_ONCE_S = 1.0
"""An answer that comes sooner than this was not waited for."""
FIRST_PAUSE_S, MOST_PAUSE_S = 2.0, 20.0

NOTHING_TO_DO = frozenset({"hold", "reconcile", "in_flight"})

Post = Callable[[], Awaitable[Answer]]
AskLate = Callable[[str, float], Awaitable[object]]


class Wait:
    """One wait. `post` posts the intent, which alone says what this caller is to do; `ask_late` reads the
    operation of this id and comes back when it has changed or so many seconds are over."""

    def __init__(self, io: Io, *, post: Post, ask_late: AskLate) -> None:
        self._io = io
        self._post = post
        self._ask_late = ask_late
        self._operation_id = ""
        self._missed: LedgerUnavailable | None = None
        self._pauses = 0

    async def for_s(self, timeout_s: float) -> str:
        """The directive as last heard. Raises LedgerUnavailable where there was no last word."""
        ends_at = self._io.monotonic_s() + timeout_s
        directive = await self._directive()
        while directive in NOTHING_TO_DO and (left_s := ends_at - self._io.monotonic_s()) > 0:
            began_at = self._io.monotonic_s()
            await self._late_answer(left_s)
            if self._io.monotonic_s() - began_at < AT_ONCE_S:
                await self._pause(ends_at - self._io.monotonic_s())
            else:
                self._pauses = 0
            directive = await self._directive()
        if self._missed is not None:
            raise self._missed
        return directive

    async def _directive(self) -> str:
        """What the caller is to do, which is nothing as long as the ledger is away."""
        try:
            answer = await self._post()
        except LedgerUnavailable as error:
            self._missed = error
            return "hold"
        except PendingReview as error:
            self._missed, self._operation_id = None, error.operation_id
            return "hold"
        self._missed, self._operation_id = None, answer.operation_id
        return answer.directive

    async def _late_answer(self, left_s: float) -> None:
        """Come back later, best when something has changed. How it stands is the intent's answer to say."""
        if not self._operation_id:
            return
        try:
            await self._ask_late(self._operation_id, min(left_s, MOST_AT_ONCE_S))
        except LedgerError:
            return

    async def _pause(self, left_s: float) -> None:
        roll = 0.5 + random.random() / 2  # noqa: S311  (spreads requests, guards nothing)
        wait_s = backoff_s(self._pauses, first_s=FIRST_PAUSE_S, most_s=MOST_PAUSE_S, roll=roll)
        self._pauses += 1
        await self._io.pause(max(0.0, min(wait_s, left_s)))
