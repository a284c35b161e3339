"""One read-only snapshot: everything read inside was true at one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

_SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL idle_in_transaction_session_timeout = '10min'",
    "SET LOCAL max_parallel_workers_per_gather = 0",  # the workers are for those who wait for an answer
    "SET LOCAL jit = off",
)


@contextmanager
def one_snapshot(*, statement_timeout_s: int = 0) -> Iterator[None]:
    """Read and write nothing; each statement within this time (0: any). Only as the outermost transaction."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            for setting in _SETTINGS:
                cursor.execute(setting)
            cursor.execute("SELECT set_config('statement_timeout', %s, TRUE)", [f"{statement_timeout_s}s"])
        yield
