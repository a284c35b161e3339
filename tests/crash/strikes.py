"""Blows beside the work of a demonstration: workers and consumers that are killed while it goes on."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from random import Random

from psutil import NoSuchProcess, Process

from tests.crash.bookkeeper import Bookkeeper
from tests.support.processes import RunningLedger

WORKERS = ("worker", "deliverer", "deliverer-2")
RESTARTS, FEWEST_KILLS = 5, 4
A_WORKER_EVERY_S = 20.0


class Strikes:
    """`killed` counts them by whom they hit; `away`: when the restarted consumer was not there."""

    def __init__(self, ledger: RunningLedger, draw: Random) -> None:
        self.killed: Counter[str] = Counter()
        self.away: list[tuple[datetime, datetime]] = []
        self._ledger, self._draw = ledger, draw
        self._failures: list[BaseException] = []

    @contextmanager
    def fall(self, dead: Bookkeeper, restarted: Bookkeeper, dead_s: float, lasts_s: float) -> Iterator[None]:
        """At moments of the next `lasts_s` seconds; afterwards every consumer is alive again."""
        plans = (
            partial(self._is_dead, dead, 0.1 * lasts_s, dead_s),
            partial(self._is_restarted, restarted, self._moments(RESTARTS, lasts_s)),
            partial(self._workers_are_killed, self._moments(self._kills(lasts_s), lasts_s)),
        )
        threads = [threading.Thread(target=self._guarded, args=(plan,), daemon=True) for plan in plans]
        for thread in threads:
            thread.start()
        yield
        for thread in threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    @staticmethod
    def _kills(lasts_s: float) -> int:
        return max(FEWEST_KILLS, int(lasts_s / A_WORKER_EVERY_S))

    def _moments(self, count: int, within_s: float) -> Iterator[None]:
        """So many random moments, from now on: each step waits for the next one."""
        began = time.monotonic()
        for after_s in sorted(self._draw.uniform(0, within_s) for _ in range(count)):
            time.sleep(max(0.0, began + after_s - time.monotonic()))
            yield

    def _guarded(self, plan: Callable[[], None]) -> None:
        try:
            plan()
        except BaseException as failure:  # noqa: BLE001  (raised where the block ends)
            self._failures.append(failure)

    def _is_dead(self, consumer: Bookkeeper, after_s: float, dead_s: float) -> None:
        time.sleep(after_s)
        consumer.kill()
        self.killed[f"the {consumer.directory.name} consumer"] += 1
        time.sleep(dead_s)
        consumer.start()

    def _is_restarted(self, consumer: Bookkeeper, moments: Iterator[None]) -> None:
        for _ in moments:
            since = _now()
            consumer.kill()
            self.killed[f"the {consumer.directory.name} consumer"] += 1
            consumer.start()
            self.away.append((since, _now()))

    def _workers_are_killed(self, moments: Iterator[None]) -> None:
        for _ in moments:
            name, process = self._one_that_is_alive()
            process.kill()
            self.killed[name] += 1

    def _one_that_is_alive(self) -> tuple[str, Process]:
        """One that was killed before may just be starting again."""
        while True:
            name = self._draw.choice(WORKERS)
            with suppress(StopIteration, NoSuchProcess):
                return name, self._ledger.child(name)
            time.sleep(0.1)


def _now() -> datetime:
    """The database is on this machine."""
    return datetime.fromtimestamp(time.time(), UTC)
