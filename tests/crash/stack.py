"""The whole ledger as real processes for one demonstration, and this process at its database.

Django is told of the database before anything that needs it is imported, so what runs inside `whole_ledger`
is imported inside it.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import django

from tests.support.processes import RunningLedger


@contextmanager
def whole_ledger(*options: str, **environment: str) -> Iterator[RunningLedger]:
    """PostgreSQL, broker, worker, scheduler and web server, all of its own; SIGTERM ends them too.
    `options` are those of `up`."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="lh-", ignore_cleanup_errors=True) as directory:
        ledger = RunningLedger(Path(directory) / "home", extra_environment=environment)
        os.environ |= {**environment, "DATABASE_URL": ledger.home.database_url}
        os.environ |= {"LEDGER_HOME": str(ledger.home.path), "DJANGO_SETTINGS_MODULE": "config.settings"}
        try:
            ledger.start(*options)
            django.setup()
            yield ledger
        finally:
            ledger.kill_everything()


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table, its columns as wide as what stands in them."""
    lines = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    drawn = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    return "\n".join([drawn[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *drawn[1:]])


def verdict(wrong: Mapping[str, bool]) -> int:
    """Print which of these were so, and did not hold; the exit code."""
    failed = [what for what, is_so in wrong.items() if is_so]
    print("FAILED: " + ", ".join(failed) if failed else "everything held")
    return 1 if failed else 0
