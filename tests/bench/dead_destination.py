"""`python -m tests.bench.dead_destination`: what ten thousand deliveries for one that hangs cost another.

The delivery age of a destination that answers at once: alone, while one that hangs has `--waiting` deliveries
due, and while six hang. One worker process, on a durable PostgreSQL.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import django

from tests.bench.server import server
from tests.support.serving import ROOT

if TYPE_CHECKING:
    from ledger.models import Destination
    from tests.support.cast import Cast

HANGING = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=200)
    parser.add_argument("--waiting", type=int, default=10_000)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="lb-") as directory,
        server(Path(directory) / "home", durable=True),
    ):
        django.setup()
        _measure(Path(directory), options.operations, options.waiting)


def _measure(directory: Path, operations: int, waiting: int) -> None:
    from django.core.management import call_command

    from tests.ledger.deliveries.helping import destination, more_waiting
    from tests.support import make
    from tests.support.cast import cast
    from tests.support.consumer import ConsumerProcess

    call_command("migrate", verbosity=0)
    people = cast()
    (directory / "good").mkdir()
    (directory / "hangs").mkdir()
    with ConsumerProcess(directory / "good") as good, ConsumerProcess(directory / "hangs") as hanging:
        hanging.answer(200, how="hang")
        books, _ = destination(people, good)
        with _worker():
            print(f"{'delivery age, ms':<32}{'p50':>8}{'p95':>8}{'most':>8}")
            _tell("alone", _ages(people, books, operations))
            bad, _ = destination(people, hanging, name="hangs-1")
            make.confirmed(people.key)
            more_waiting(bad.deliveries.get(), waiting)
            _tell(f"one hangs, {waiting:,} wait for it", _ages(people, books, operations))
            for number in range(2, HANGING + 1):
                destination(people, hanging, name=f"hangs-{number}")
            _tell(f"{HANGING} hang", _ages(people, books, operations))


@contextmanager
def _worker() -> Iterator[None]:
    command = [sys.executable, "manage.py", "deliver", "--every", "0.05"]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        running.kill()
        running.wait()


def _ages(people: Cast, books: Destination, operations: int) -> list[float]:
    """In milliseconds, sorted: of so many operations, each told before the next is done."""
    from django.db.models import F

    from ledger.models import Delivery
    from tests.support import make
    from tests.support.processes import wait_until

    told = []
    for _ in range(operations):
        operation_id = make.confirmed(people.key).operation_id
        one = Delivery.objects.filter(destination=books, operation=operation_id, state="ACKED")
        wait_until(one.exists, within_s=120.0, what="told")
        told.append(operation_id)
    rows = Delivery.objects.filter(destination=books, operation__in=told)
    ages = rows.annotate(age=F("acked_at") - F("created_at")).values_list("age", flat=True)
    return sorted(age.total_seconds() * 1000 for age in ages)


def _tell(what: str, ages: list[float]) -> None:
    p50, p95 = (ages[int(len(ages) * share)] for share in (0.5, 0.95))
    print(f"{what:<32}{p50:>8.0f}{p95:>8.0f}{ages[-1]:>8.0f}", flush=True)


if __name__ == "__main__":
    main()
