"""Looks at what the far side did, all the time, and stops the database when so much has happened."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import httpx
import psutil

from tests.support.processes import RunningLedger, wait_until

LOOK_EVERY_S = 0.2
BACK_WITHIN_S = 60.0


class Watch:
    """A thread that counts. `most`: the most effects one operation ever had; `looks`: how often it looked."""

    def __init__(
        self, ledger: RunningLedger, effects: Callable[[], Counter[str]], stop_at: list[int]
    ) -> None:
        self.most = self.looks = self.stopped = 0
        self._ledger, self._effects, self._stop_at = ledger, effects, stop_at
        self._over, self._database = threading.Event(), threading.Lock()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    @contextmanager
    def database_stays(self) -> Iterator[None]:
        """Inside, the database runs."""
        with self._database:
            yield

    def _run(self) -> None:
        try:
            while not self._over.wait(LOOK_EVERY_S):
                self._look()
            self._look()
        except BaseException as error:
            self._failure = error
            raise

    def _look(self) -> None:
        effects = self._effects()
        self.looks += 1
        self.most = max(self.most, *effects.values(), 0)
        if self._stop_at and effects.total() >= self._stop_at[0]:
            del self._stop_at[0]
            with self._database:
                self._stop_database()

    def _stop_database(self) -> None:
        """As `pg_ctl stop -m immediate`; `up` starts it again, through its own recovery."""
        postmaster = self._ledger.postmaster()
        postmaster.send_signal(signal.SIGQUIT)
        psutil.wait_procs([postmaster], timeout=BACK_WITHIN_S)
        self.stopped += 1
        wait_until(self._is_back, within_s=BACK_WITHIN_S, what="the ledger is ready again")

    def _is_back(self) -> bool:
        try:
            return httpx.get(f"{self._ledger.address}/readyz", trust_env=False, timeout=5).status_code == 200
        except httpx.TransportError:
            return False
