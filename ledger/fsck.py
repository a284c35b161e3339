"""Run the invariants and keep what came of it: the whole ledger, or what was written to since it was clean.

A run reads one snapshot and writes one row after it. Two at once are harmless: neither holds a lock that work
waits for, and each tells only what it saw itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, connection

from ledger.models import FsckForm, FsckRun, Tenant
from ledger.queries.fsck import newest_runs, whole_is_due
from ledger.queries.invariants import INVARIANTS, Finding, findings_of, tenant_slugs
from ledger.queries.invariants.scope import Scope
from ledger.queries.snapshot import one_snapshot
from ledger.transactions import database_clock, durable, monotonic_s

STATEMENT_TIMEOUT_S = {FsckForm.WHOLE: 300, FsckForm.TOUCHED: 60}
"""In the background no check holds a session for longer: one that takes more is itself a finding."""

KEPT_FOR = timedelta(days=7)
KEPT_FINDINGS = 20  # of each tenant
KEPT_DURATIONS = 10
ONE_AT_A_TIME = 0x1ED6F5C
"""Key of the advisory lock of runs in the background: a long one never takes a second worker."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Asked:
    """One invariant: how long it took, and in how many places it is broken."""

    name: str
    duration_s: float
    findings: int


@dataclass(frozen=True)
class Report:
    """What one run saw. `since`: the clean run it went on from (None: it looked at everything); `operations`:
    how many it looked at (None: every one)."""

    form: FsckForm
    started_at: datetime
    ended_at: datetime
    since: int | None
    operations: int | None
    checks: tuple[Asked, ...]
    findings: tuple[Finding, ...]
    sight: Sight


@dataclass(frozen=True)
class Sight:
    """What a run can see: the snapshot, as PostgreSQL writes it, and whose transactions it names."""

    snapshot: str
    system: str


def run_fsck(form: FsckForm, *, tenant: Tenant | None = None, statement_timeout_s: int = 0) -> Report:
    """Ask every invariant in one read-only snapshot. Call it outside any transaction."""
    with one_snapshot(statement_timeout_s=statement_timeout_s):
        return _looked_at(form, tenant)


def kept(report: Report) -> FsckRun:
    """Write the run down, and forget those older than a week that nothing goes by any more."""
    return durable(lambda: _keep(report))


def kept_if_possible(report: Report) -> FsckRun | None:
    """The same, where the database takes it: one that only reads can be checked as well."""
    try:
        return kept(report)
    except DatabaseError as error:
        log.warning("fsck_not_kept", problem=str(error).splitlines()[0])
        return None


def in_background(form: FsckForm) -> FsckRun | None:
    """One run as the scheduler wants it; None where another is at it, or a whole one is not due yet."""
    if form is FsckForm.WHOLE and not whole_is_due(database_clock()):
        return None
    with _alone() as alone:
        if not alone:
            return None
        run = kept(run_fsck(form, statement_timeout_s=STATEMENT_TIMEOUT_S[form]))
    if run.findings_count:
        log.error("fsck_found_faults", run=run.pk, form=form, findings=run.findings_count)
    return run


def _looked_at(form: FsckForm, tenant: Tenant | None) -> Report:
    sight, started_at = _sight(), database_clock()
    since = _clean_run(sight) if form is FsckForm.TOUCHED else None
    operations = _touched_since(since) if since else None
    checks: list[Asked] = []
    found = list(_ask_all(Scope(tenant.pk if tenant else None, operations), checks))
    return Report(
        form=form,
        started_at=started_at,
        ended_at=database_clock(),
        since=since.pk if since else None,
        operations=None if operations is None else len(operations),
        checks=tuple(checks),
        findings=tuple(found),
        sight=sight,
    )


def _ask_all(scope: Scope, checks: list[Asked]) -> Iterator[Finding]:
    slugs = tenant_slugs()
    for check in INVARIANTS:
        began = monotonic_s()
        found = list(findings_of(check, scope, slugs))
        checks.append(Asked(check.__name__, round(monotonic_s() - began, 4), len(found)))
        yield from found


def _sight() -> Sight:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_current_snapshot()::text, (SELECT system_identifier::text FROM pg_control_system())"
        )
        return Sight(*cursor.fetchone())


def _clean_run(sight: Sight) -> FsckRun | None:
    """The newest run that found nothing; none in a copy of the database, whose transactions are others."""
    return FsckRun.objects.filter(findings_count=0, system=sight.system).order_by("-started_at").first()


def _touched_since(run: FsckRun) -> tuple[str, ...]:
    """Every operation with an event that the run could not see yet, however late it was committed.

    Transactions of the future are those of another cluster, copied with their rows.
    """
    sql = """
        SELECT DISTINCT operation_id FROM ledger_event
        WHERE written_in >= pg_snapshot_xmin(%(seen)s::pg_snapshot)
          AND written_in < pg_snapshot_xmax(pg_current_snapshot())
          AND NOT pg_visible_in_snapshot(written_in, %(seen)s::pg_snapshot)
        ORDER BY operation_id
    """
    with connection.cursor() as cursor:
        cursor.execute(sql, {"seen": run.snapshot})
        return tuple(operation_id for (operation_id,) in cursor.fetchall())


def _keep(report: Report) -> FsckRun:
    run = FsckRun.objects.create(
        form=report.form,
        started_at=report.started_at,
        ended_at=report.ended_at,
        operations=report.operations,
        invariants=len(report.checks),
        findings_count=len(report.findings),
        findings=[finding.__dict__ for finding in _first_of_each_tenant(report.findings)],
        counts=dict(Counter(finding.tenant for finding in report.findings)),
        slowest=dict(_slowest(report.checks)),
        snapshot=report.sight.snapshot,
        system=report.sight.system,
    )
    _forget_old_runs(run.ended_at)
    return run


def _first_of_each_tenant(findings: Iterable[Finding]) -> Iterator[Finding]:
    seen: Counter[str] = Counter()
    for finding in findings:
        seen[finding.tenant] += 1
        if seen[finding.tenant] <= KEPT_FINDINGS:
            yield finding


def _slowest(checks: Iterable[Asked]) -> list[tuple[str, float]]:
    by_duration = sorted(checks, key=lambda asked: asked.duration_s, reverse=True)
    return [(asked.name, asked.duration_s) for asked in by_duration[:KEPT_DURATIONS]]


def _forget_old_runs(now: datetime) -> None:
    """What the next run or a page goes by is never forgotten."""
    needed = {run.pk for run in newest_runs()}
    clean = FsckRun.objects.filter(findings_count=0).order_by("-started_at").values_list("pk", flat=True)
    needed.update(clean[:1])
    FsckRun.objects.filter(started_at__lt=now - KEPT_FOR).exclude(pk__in=needed).delete()


@contextmanager
def _alone() -> Iterator[bool]:
    """Whether nobody else runs in the background, and nobody will inside the block."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [ONE_AT_A_TIME])
        (held,) = cursor.fetchone()
        try:
            yield held
        finally:
            if held:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [ONE_AT_A_TIME])
