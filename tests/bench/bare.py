"""A bare client: it knows its work beforehand, does it from 16 threads, and writes many rows at once."""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any, Generic, TypeVar

import django
import httpx
import psycopg
from django.conf import settings

from tests.bench.rounds import take_turn

THREADS = 16
WRITTEN_AT_ONCE = 32

Due = TypeVar("Due")


class Bare(ABC, Generic[Due]):
    """What a script would do: one HTTP client, one connection to the database, one thread that writes."""

    def __init__(self, due_sql: str, due_row: Callable[..., Due]) -> None:
        database = settings.DATABASES["default"]
        self._connection = psycopg.connect(
            host=database["HOST"], dbname=database["NAME"], user=database["USER"]
        )
        self._due = [due_row(*row) for row in self._connection.execute(due_sql)]
        self._connection.commit()
        limits = httpx.Limits(max_connections=THREADS, max_keepalive_connections=THREADS)
        self.client = httpx.Client(limits=limits, trust_env=False)
        self._answered: queue.SimpleQueue[Due | None] = queue.SimpleQueue()

    @abstractmethod
    def ask(self, due: Due) -> None:
        """One request, and what it brings, in a thread of many."""

    @abstractmethod
    def write(self, cursor: psycopg.Cursor, batch: Sequence[Due], now: datetime) -> None:
        """What ours writes of these, in the transaction that is open."""

    def __call__(self) -> int:
        with ThreadPoolExecutor(THREADS) as threads, ThreadPoolExecutor(1) as beside:
            writing = beside.submit(self._write_all)
            for _ in threads.map(self._one, self._due):
                pass
            self._answered.put(None)
            writing.result()
        return len(self._due)

    def _one(self, due: Due) -> None:
        self.ask(due)
        self._answered.put(due)

    def _write_all(self) -> None:
        batch: list[Due] = []
        while (due := self._answered.get()) is not None:
            batch.append(due)
            if len(batch) == WRITTEN_AT_ONCE or self._answered.empty():
                self._write(batch)
                batch = []
        if batch:
            self._write(batch)

    def _write(self, batch: Sequence[Due]) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            (now,) = self._connection.execute("SELECT clock_timestamp()").fetchone() or ()
            self.write(cursor, batch, now)


def compete(
    kind: str,
    *,
    bare: Callable[[], Bare[Any]],
    ours: Callable[[], int],
    warm_up: Callable[[], object],
) -> None:
    """One process's turn, as `ours` or `bare`. A worker has long worked when it is measured: it is warmed up,
    its HTTP client made."""
    django.setup()
    if kind == "bare":
        take_turn(bare())
        return
    from ledger import http

    warm_up()
    with suppress(http.AddressRefused):
        http.request("GET", "http://127.0.0.1:9/")
    take_turn(ours)
