"""Several things done at the same moment, each on a connection of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, Self

from django.db import connection

from ledger.lifecycle import DecisionRefused
from ledger.transactions import Busy

Work = Callable[[], Any]
_STEPS_S = (0.000_5, 0.05)


def at_once(*works: Work, may_raise: tuple[type[Exception], ...] = (Busy, DecisionRefused)) -> list[Any]:
    """The answers in order; what may be raised is an answer, too."""
    start = Barrier(len(works))

    def one(work: Work) -> Any:
        try:
            connection.ensure_connection()
            start.wait(timeout=30)
            return work()
        except may_raise as refused:
            return refused
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(one, works))


class Duel:
    """Two sides that meet again and again, each on one connection of its own. Whoever was first last time
    begins a little later, the more so the longer that goes on: so both are first about as often."""

    def __init__(self) -> None:
        self._sides = ThreadPoolExecutor(2)
        self._head_start_s = 0.0  # of the right side; below zero, of the left one
        self._step_s = _STEPS_S[0]
        self._left_was_first = False

    def meet(self, left: Work, right: Work, *, may_raise: tuple[type[Exception], ...]) -> tuple[Any, Any]:
        """Both answers; what may be raised is one, too."""
        start = Barrier(2)
        waits_s = (max(0.0, self._head_start_s), max(0.0, -self._head_start_s))

        def one(work: Work, wait_s: float) -> Any:
            connection.ensure_connection()
            start.wait(timeout=30)
            time.sleep(wait_s)
            try:
                return work()
            except may_raise as refused:
                return refused

        asked = [self._sides.submit(one, *side) for side in zip((left, right), waits_s, strict=True)]
        return asked[0].result(60), asked[1].result(60)

    def handicap(self, *, left_was_first: bool) -> None:
        """For the next meeting."""
        factor = 2 if left_was_first is self._left_was_first else 0.25
        self._step_s = min(max(self._step_s * factor, _STEPS_S[0]), _STEPS_S[1])
        self._head_start_s += self._step_s if left_was_first else -self._step_s
        self._left_was_first = left_was_first

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        parting = Barrier(2)

        def part() -> None:
            parting.wait(timeout=30)
            connection.close()

        for done in [self._sides.submit(part) for _ in range(2)]:
            done.result(60)
        self._sides.shutdown()
