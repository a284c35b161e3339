"""`python -m tests.bench.fsck`: how long fsck takes, whole and of what was touched, on a database of its own.

It makes `--operations` operations, runs the whole form, makes `--touched` more, and runs the other form.
`--checks` lists what each check took, `--explain` the plans of
the slowest.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import django

from tests.bench.server import server

if TYPE_CHECKING:
    from ledger.fsck import Report
    from tests.bench.work import Work

SHOWN = 12


def main() -> None:
    options = _options()
    with (
        tempfile.TemporaryDirectory(prefix="lb-") as directory,
        server(Path(directory) / "home", durable=False),
    ):
        django.setup()
        from django.core.management import call_command

        from tests.bench.work import Work

        call_command("migrate", verbosity=0)
        work = Work(random.Random(options.seed))
        for made in work.fill(options.operations):
            _tell(f"\r{made} operations", end="")
        _tell("")
        _measure(work, touched=options.touched, checks=options.checks, explain=options.explain)


def _measure(work: Work, *, touched: int, checks: bool, explain: bool) -> None:
    from django.db import connection

    from ledger.fsck import kept, run_fsck
    from ledger.models import Event, FsckForm
    from tests.bench.plans import explained

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    run_fsck(FsckForm.TOUCHED)  # what a process works out once is worked out
    made, events_made = work.operations, Event.objects.count()
    whole = run_fsck(FsckForm.WHOLE)
    kept(whole)
    nothing = run_fsck(FsckForm.TOUCHED)
    work.make(touched)
    some = run_fsck(FsckForm.TOUCHED)
    print(f"{'form':<20}{'operations':>12}{'events':>10}{'seconds':>10}{'findings':>10}")
    for name, operations, events, report in (
        ("whole", made, events_made, whole),
        ("touched, nothing", 0, 0, nothing),
        ("touched", touched, Event.objects.count() - events_made, some),
    ):
        seconds = (report.ended_at - report.started_at).total_seconds()
        print(f"{name:<20}{operations:>12}{events:>10}{seconds:>10.2f}{len(report.findings):>10}")
    if checks:
        _by_check(whole, some)
    if explain:
        print("\n".join(explained()))


def _by_check(whole: Report, some: Report) -> None:
    of_some = {check.name: check.duration_s for check in some.checks}
    print(f"\n{'slowest checks, in ms':<52}{'whole':>10}{'touched':>10}")
    for check in sorted(whole.checks, key=lambda check: -check.duration_s)[:SHOWN]:
        print(f"{check.name:<52}{check.duration_s * 1000:>10.0f}{of_some[check.name] * 1000:>10.1f}")


def _tell(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--touched", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checks", action="store_true")
    parser.add_argument("--explain", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
