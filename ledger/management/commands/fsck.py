"""`manage.py fsck`: ask every invariant in one read-only snapshot.

`--json` answers with one object; exit code 1 where `findings` is not empty:

- `run` (int or null): the number under which it is kept; null with `--tenant`, which is not, and where the
  database only reads
- `form` ("whole" or "touched"), `started_at`, `ended_at` (ISO 8601, UTC), `duration_s`
- `since` (int or null): the clean run it went on from; `operations` (int or null): how many it looked at,
  null for every one
- `invariants` (int), `checks`: a list of {`name`, `duration_s`, `findings` (int)}, one for each invariant
- `findings`: a list of {`invariant`, `tenant` (its slug, "" for the whole system), `subject_id`, `detail`}
"""

from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from ledger.fsck import Report, kept_if_possible, run_fsck
from ledger.management.command import Answer, Exit, LedgerCommand, tenant_named
from ledger.models import FsckForm
from ledger.queries.invariants import Finding


class Command(LedgerCommand):
    help = "Check every invariant, and keep what was found. Exit 1 and a list where any is broken."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", default="", metavar="SLUG", help="only this tenant (default: all)")
        parser.add_argument(
            "--since-last",
            action="store_true",
            help="only operations written to since the last run that found nothing",
        )

    def answer(self, *, tenant: str, since_last: bool, **_options: Any) -> Answer:
        form = FsckForm.TOUCHED if since_last else FsckForm.WHOLE
        report = run_fsck(form, tenant=tenant_named(tenant) if tenant else None)
        run = None if tenant else kept_if_possible(report)
        data = _as_data(report, run.pk if run else None)
        if not report.findings:
            return Answer(f"{len(report.checks)} invariants hold{_of_what(report)}.", data)
        lines = [*map(_line, report.findings), _count(report)]
        return Answer("\n".join(lines), data, Exit.FAULT_FOUND)


def _as_data(report: Report, run_id: int | None) -> dict[str, object]:
    return {
        "run": run_id,
        "form": str(report.form),
        "started_at": report.started_at.isoformat(),
        "ended_at": report.ended_at.isoformat(),
        "duration_s": (report.ended_at - report.started_at).total_seconds(),
        "since": report.since,
        "operations": report.operations,
        "invariants": len(report.checks),
        "checks": [asdict(check) for check in report.checks],
        "findings": [asdict(finding) for finding in report.findings],
    }


def _of_what(report: Report) -> str:
    if report.operations is None:
        return ""
    return f" for what was written to since run {report.since} ({report.operations} operations)"


def _line(finding: Finding) -> str:
    return f"{finding.invariant}: {finding.tenant or '-'} {finding.subject_id} {finding.detail}"


def _count(report: Report) -> str:
    broken = sum(bool(check.findings) for check in report.checks)
    places = len(report.findings)
    return f"{broken} of {len(report.checks)} invariants are broken, in {places} places{_of_what(report)}."
