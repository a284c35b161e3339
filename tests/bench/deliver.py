"""`python -m tests.bench.deliver`: mark P7, delivering to consumers that answer in 20 ms.

One interleaved run of rounds on one durable PostgreSQL: a bare 16-thread client that writes the same rows,
one worker process of ours, two of them. Eight destinations with their usual places; a slice is `--slice`
deliveries. Prints deliveries a second (min / median / max), the CPU each costs in the process and in the
database, and the two ratios.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import django
import psutil

from tests.bench.server import server
from tests.support.serving import kill_program, start_program

DESTINATIONS = 32
"""With four places each, more than two workers have: else their limits, and no worker, would be measured."""
KINDS = {"bare": ("bare",), "one worker": ("ours",), "two workers": ("ours", "ours")}
TARGET, SECOND_TARGET = 0.8, 0.7


@dataclass(frozen=True)
class Slice:
    """One kind's turn: deliveries a second, and milliseconds of CPU for each, in processes and database."""

    per_s: float
    cpu_ms: float
    database_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slice", type=int, default=600)
    options = parser.parse_args()
    answering, port = start_program("tests.bench.answering")
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        try:
            with server(Path(directory) / "home", durable=True) as postmaster:
                django.setup()
                _prepare(int(port), options.rounds * options.slice * len(KINDS))
                found = _rounds(postmaster, options.rounds, options.slice)
        finally:
            kill_program(answering)
    _tell(found)


def _rounds(postmaster: psutil.Process, rounds: int, size: int) -> dict[str, list[Slice]]:
    found: dict[str, list[Slice]] = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind, programs in KINDS.items():
            found[kind].append(_slice(postmaster, programs, size))
            print(f"round {number + 1}, {kind}: {found[kind][-1].per_s:.0f}/s", file=sys.stderr, flush=True)
    return found


def _slice(postmaster: psutil.Process, programs: Sequence[str], size: int) -> Slice:
    """Make so many due, let them all begin at once, and see how long the last one takes."""
    knows_its_work = "bare" in programs
    if knows_its_work:
        _make_due(size)
    running = [start_program("tests.bench.delivering", program)[0] for program in programs]
    if not knows_its_work:
        _make_due(size)
    cpu_before = _cpu_s(postmaster)
    began = time.monotonic()
    for process in running:
        _say(process, "go")
    said = [_hear(process) for process in running]
    took_s, cpu_after = max(one["took_s"] for one in said), _cpu_s(postmaster)
    assert time.monotonic() - began >= took_s
    done = sum(one["done"] for one in said)
    assert done == size, f"{done} of {size} were delivered"
    for process in running:
        _say(process, "end")
        process.communicate()
    cpu_s = sum(one["cpu_s"] for one in said)
    return Slice(done / took_s, 1000 * cpu_s / done, 1000 * (cpu_after - cpu_before) / done)


def _say(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(word + "\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> dict[str, float]:
    assert process.stdout is not None
    said: dict[str, float] = json.loads(process.stdout.readline())
    return said


def _cpu_s(postmaster: psutil.Process) -> float:
    """Of the database's processes, those that have ended too."""
    ended = postmaster.cpu_times()
    used = ended.children_user + ended.children_system
    for process in postmaster.children():
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used += times.user + times.system
    return float(used)


def _prepare(port: int, deliveries: int) -> None:
    """So many operations that were settled and told to nobody yet, spread over the destinations."""
    from django.core.management import call_command
    from django.db import connection, transaction

    from ledger.deliveries import add_destination
    from ledger.events import SYSTEM
    from ledger.models import Delivery
    from ledger.transactions import database_clock, durable
    from tests.bench.work import Work

    call_command("migrate", verbosity=0)
    work = Work(random.Random(1))
    for made in work.fill(int(deliveries * 1.2) + 100):
        print(f"\r{made} operations", end="", file=sys.stderr, flush=True)
    tenant_id, url = work.cast.tenant.pk, f"http://127.0.0.1:{port}/hooks"
    for number in range(DESTINATIONS):
        add = partial(add_destination, tenant_id=tenant_id, url=url, ack="response", actor=SYSTEM)
        durable(partial(add, name=f"bench-{number}"))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(_SPREAD, [DESTINATIONS])
        cursor.execute("ANALYZE")
    assert Delivery.objects.filter(next_at__gt=database_clock()).count() >= deliveries


_SPREAD = """
    UPDATE ledger_delivery delivery SET destination_id = chosen.id, next_at = now() + interval '1 day'
    FROM (
        SELECT id, row_number() OVER (ORDER BY id) AS place FROM ledger_destination
        WHERE name LIKE 'bench-%%'
    ) chosen, (
        SELECT id, row_number() OVER (ORDER BY id) AS place FROM ledger_delivery WHERE state = 'PENDING'
    ) waiting
    WHERE waiting.id = delivery.id AND waiting.place %% %s + 1 = chosen.place
"""


def _make_due(size: int) -> None:
    from ledger.models import Delivery
    from ledger.transactions import database_clock

    now = database_clock()
    later = Delivery.objects.filter(next_at__gt=now).order_by("pk").values("pk")[:size]
    assert Delivery.objects.filter(pk__in=later).update(next_at=now) == size


def _tell(found: dict[str, list[Slice]]) -> None:
    print(f"{'':<14}{'a second: min / median / max':>32}{'CPU ms each':>14}{'database ms':>14}")
    for kind, slices in found.items():
        speeds = [one.per_s for one in slices]
        told = f"{min(speeds):.0f} / {median(speeds):.0f} / {max(speeds):.0f}"
        cpu, database = (
            median(values) for values in zip(*((s.cpu_ms, s.database_ms) for s in slices), strict=True)
        )
        print(f"{kind:<14}{told:>32}{cpu:>14.2f}{database:>14.2f}")
    ratios = [ours.per_s / bare.per_s for ours, bare in zip(found["one worker"], found["bare"], strict=True)]
    gains = [
        two.per_s / one.per_s - 1 for two, one in zip(found["two workers"], found["one worker"], strict=True)
    ]
    for what, values, target in (
        ("one worker / bare", ratios, TARGET),
        ("the second adds", gains, SECOND_TARGET),
    ):
        print(f"{what:<20}{min(values):.2f} / {median(values):.2f} / {max(values):.2f}   (target {target})")


if __name__ == "__main__":
    main()
