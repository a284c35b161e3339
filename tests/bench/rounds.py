"""Interleaved rounds: a bare client, one worker process of ours, two of them, on one durable PostgreSQL.

`compare` runs them and prints the table; `take_turn` is what each of the processes does.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import django
import psutil

from tests.bench.server import server
from tests.support.serving import kill_program, start_program

KINDS = {"bare": ("bare",), "one worker": ("ours",), "two workers": ("ours", "ours")}
TARGET, SECOND_TARGET = 0.8, 0.7


@dataclass(frozen=True)
class Slice:
    """One kind's turn: how many a second, and milliseconds of CPU for each, in processes and database."""

    per_s: float
    cpu_ms: float
    database_ms: float


@dataclass(frozen=True)
class Bench:
    """What is measured: the module of a process, how so much work is prepared for what answers at a port, and
    how a part of it is made due."""

    about: str
    program: str
    prepare: Callable[[int, int], None]
    make_due: Callable[[int], None]


def compare(bench: Bench) -> None:
    parser = argparse.ArgumentParser(description=bench.about)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slice", type=int, default=600)
    options = parser.parse_args()
    answering, port = start_program("tests.bench.answering")
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        try:
            with server(Path(directory) / "home", durable=True) as postmaster:
                django.setup()
                bench.prepare(int(port), options.rounds * options.slice * len(KINDS))
                found = _rounds(bench, postmaster, options.rounds, options.slice)
        finally:
            kill_program(answering)
    _tell(found)


def take_turn(work: Callable[[], int]) -> None:
    """Say "ready", wait for a line, work, and say how many, for how long, with how much CPU, in JSON."""
    print("ready", flush=True)
    sys.stdin.readline()
    began_s, began_cpu_s = time.monotonic(), _own_cpu_s()
    done = work()
    said = {"done": done, "took_s": time.monotonic() - began_s, "cpu_s": _own_cpu_s() - began_cpu_s}
    print(json.dumps(said), flush=True)
    sys.stdin.readline()


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _rounds(bench: Bench, postmaster: psutil.Process, rounds: int, size: int) -> dict[str, list[Slice]]:
    found: dict[str, list[Slice]] = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind, programs in KINDS.items():
            found[kind].append(_slice(bench, postmaster, programs, size))
            print(f"round {number + 1}, {kind}: {found[kind][-1].per_s:.0f}/s", file=sys.stderr, flush=True)
    return found


def _slice(bench: Bench, postmaster: psutil.Process, programs: Sequence[str], size: int) -> Slice:
    """Make so many due, let them all begin at once, and see how long the last one takes."""
    knows_its_work = "bare" in programs
    if knows_its_work:
        bench.make_due(size)
    running = [start_program(bench.program, program)[0] for program in programs]
    if not knows_its_work:
        bench.make_due(size)
    cpu_before = _cpu_s(postmaster)
    for process in running:
        _say(process, "go")
    said = [_hear(process) for process in running]
    took_s, cpu_after = max(one["took_s"] for one in said), _cpu_s(postmaster)
    done = sum(one["done"] for one in said)
    assert done == size, f"{done} of {size} were done"
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
