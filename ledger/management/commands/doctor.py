"""`manage.py doctor`: what is missing or unsafe here, and the command that mends it. Changes nothing."""

import os
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError, OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

from ledger.deliveries import troubles_of_destinations
from ledger.management.command import Answer, Exit, LedgerCommand
from ledger.management.local.diagnosis import Finding, Machine
from ledger.models import Destination
from ledger.queries.fsck import last_runs, standing_runs
from ledger.reconciliation.advice import advice_on_everything
from ledger.transactions import database_clock

_SCHEDULER = "python manage.py up (its scheduler and worker run it)"


class Command(LedgerCommand):
    help = "Say what is missing or unsafe on this machine, and the command that mends it."
    requires_system_checks = []

    def answer(self, *_arguments: Any, **_options: Any) -> Answer:
        findings = [*Machine(settings.HOME, os.environ).examine(), *_database(), *_fsck()]
        faulty = any(finding.is_fault for finding in findings)
        return Answer(
            "\n".join(_line(finding) for finding in findings),
            {"findings": [asdict(finding) for finding in findings]},
            Exit.FAULT_FOUND if faulty else Exit.OK,
        )


def _database() -> list[Finding]:
    """What the database says of itself, and of rules and providers where it is prepared."""
    migrations = _migrations()
    if not migrations or any(finding.is_fault for finding in migrations):
        return migrations
    advice = [Finding(each.about, each.problem, each.mend) for each in advice_on_everything()]
    return [*migrations, *(advice or [Finding("rules and providers", "fit together")]), *_destinations()]


def _destinations() -> list[Finding]:
    """Nothing is said where there is none; else each that hears nothing, or one line for all."""
    troubles = [Finding(each.about, each.problem, each.mend) for each in troubles_of_destinations()]
    well = [Finding("destinations", "signed for, and none paused or only failing")]
    return troubles or (well if Destination.objects.exists() else [])


def _migrations() -> list[Finding]:
    try:
        executor = MigrationExecutor(connection)
    except OperationalError:
        return []
    missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    if missing:
        return [Finding("migrations", f"{missing} not applied", "python manage.py migrate")]
    return [Finding("migrations", "all applied")]


def _fsck() -> list[Finding]:
    """What the scheduler's runs say. They begin with the first `up`: none at all is no fault yet."""
    try:
        return [*_red(), *_stale(database_clock())]
    except DatabaseError:  # down, or not migrated: said already
        return []


def _red() -> list[Finding]:
    found = max((run.findings_count for run in standing_runs()), default=0)
    if not found:
        return []
    mend = "python manage.py fsck (it lists them; a broken invariant is a bug or a hand in the database)"
    return [Finding("fsck", f"invariants are broken in {found} places", mend)]


def _stale(now: datetime) -> list[Finding]:
    return [
        Finding("fsck", f"the last {last.form} run began {last.checked_at:%Y-%m-%d %H:%M} UTC", _SCHEDULER)
        if last.is_stale(now)
        else Finding("fsck", f"the last {last.form} run is recent")
        for last in last_runs()
        if last.checked_at is not None
    ]


def _line(finding: Finding) -> str:
    line = f"{'✗' if finding.is_fault else '✓'} {finding.subject}: {finding.detail}"
    return f"{line}\n    mend: {finding.mend}" if finding.is_fault else line
