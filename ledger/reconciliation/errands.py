"""Threads that ask, and one that has the database: what they want of it, they let it do.

So a process has one connection however many it asks at once, and a test or a fork sees everything that is
written in the thread that began the pass.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from ledger.providers.pace import Turns
from ledger.transactions import DATABASE_GONE

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True)
class _Errand:
    """What a thread wants of the database, and where it waits for it."""

    do: Callable[[], Any]
    done: Future[Any] = field(default_factory=Future)


class PassIsOver(Exception):
    """The pass that this was asked for has ended by an error: nobody waits for the answer."""


class Threads(Generic[_T]):
    """So many threads of one pass, and one inbox for their answers and errands. Made and ended in the pass,
    so that none is there when the process is forked."""

    def __init__(self, most: int) -> None:
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="ask")
        self._inbox: queue.SimpleQueue[_T | _Errand] = queue.SimpleQueue()
        self._answers: list[_T] = []
        self._closing = threading.Lock()
        self._closed = False
        self.under_way = 0

    def begin(self, ask: Callable[[], _T]) -> None:
        """Have it asked at once. It must not raise, and must need no database."""
        self.under_way += 1
        self._threads.submit(copy_context().run, lambda: self._inbox.put(ask()))

    def answers(self) -> list[_T]:
        """What was answered since, at least one; meanwhile errands are run."""
        while not self._answers:
            self._take(self._inbox.get())
        self.run_errands()
        answered, self._answers = self._answers, []
        self.under_way -= len(answered)
        return answered

    def run_errands(self) -> None:
        """Those that wait now. In between long work, so that no thread waits for the end of it."""
        while not self._inbox.empty():
            self._take(self._inbox.get())

    def send_on(self, do: Callable[[], _R]) -> _R:
        """From a thread: have this done with the database. Raises what it raised, or PassIsOver."""
        errand = _Errand(do)
        with self._closing:
            if self._closed:
                raise PassIsOver
            self._inbox.put(errand)
        done: _R = errand.done.result()
        return done

    def close(self) -> None:
        """Wait for nobody: whoever is still under way tells nobody any more."""
        with self._closing:
            self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        while not self._inbox.empty():
            if isinstance(left := self._inbox.get(), _Errand):
                left.done.set_exception(PassIsOver())

    def _take(self, one: _T | _Errand) -> None:
        if isinstance(one, _Errand):
            _run(one)
        else:
            self._answers.append(one)


def _run(errand: _Errand) -> None:
    """A database that is gone is the trouble of the whole pass."""
    try:
        errand.done.set_result(errand.do())
    except DATABASE_GONE:
        errand.done.set_exception(PassIsOver())
        raise
    except Exception as error:  # noqa: BLE001  (the thread that sent it says what went wrong)
        errand.done.set_exception(error)


class TurnsByErrand:
    """A provider's clocks, for threads that have no database."""

    def __init__(self, threads: Threads[_T], turns: Turns) -> None:
        self._threads, self._turns = threads, turns

    def take(self, name: str, spacing_s: float, within_s: float) -> float | None:
        return self._threads.send_on(partial(self._turns.take, name, spacing_s, within_s))

    def next_in_s(self, *names: str) -> float:
        return self._threads.send_on(partial(self._turns.next_in_s, *names))

    def hold(self, name: str, seconds: float) -> None:
        self._threads.send_on(partial(self._turns.hold, name, seconds))
