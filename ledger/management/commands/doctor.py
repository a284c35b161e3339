"""`manage.py doctor`: what is missing or unsafe here, and the command that mends it. Changes nothing."""

import os
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

from ledger.management.command import Answer, Exit, LedgerCommand
from ledger.management.local.diagnosis import Finding, Machine
from ledger.reconciliation.advice import advice_on_everything


class Command(LedgerCommand):
    help = "Say what is missing or unsafe on this machine, and the command that mends it."
    requires_system_checks = []

    def answer(self, *_arguments: Any, **_options: Any) -> Answer:
        findings = [*Machine(settings.HOME, os.environ).examine(), *_database()]
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
    return [*migrations, *(advice or [Finding("rules and providers", "fit together")])]


def _migrations() -> list[Finding]:
    try:
        executor = MigrationExecutor(connection)
    except OperationalError:
        return []
    missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    if missing:
        return [Finding("migrations", f"{missing} not applied", "python manage.py migrate")]
    return [Finding("migrations", "all applied")]


def _line(finding: Finding) -> str:
    line = f"{'✗' if finding.is_fault else '✓'} {finding.subject}: {finding.detail}"
    return f"{line}\n    mend: {finding.mend}" if finding.is_fault else line
