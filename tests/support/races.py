"""Several things done at the same moment, each on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connection

from ledger.lifecycle import DecisionRefused
from ledger.transactions import Busy

Work = Callable[[], Any]


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
