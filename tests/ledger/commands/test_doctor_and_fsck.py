"""The doctor mentions what fsck found, and that it has not run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ledger.models import FsckRun
from ledger.transactions import database_clock
from tests.ledger.commands.support import run

pytestmark = pytest.mark.django_db


def ran(form: str, *, found: int = 0, ago: timedelta = timedelta(0)) -> None:
    began = database_clock() - ago
    FsckRun.objects.create(form=form, started_at=began, ended_at=began, invariants=50, findings_count=found)


def told() -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = run("doctor").data["findings"]
    return [finding for finding in findings if finding["subject"] == "fsck"]


def test_nothing_is_said_before_the_first_run() -> None:
    assert told() == []


def test_recent_and_clean_runs_are_well() -> None:
    ran("whole")
    ran("touched")
    assert [finding["mend"] for finding in told()] == ["", ""]


def test_a_finding_is_a_fault() -> None:
    ran("whole", found=3)
    assert told()[0]["detail"] == "invariants are broken in 3 places"
    assert "manage.py fsck" in told()[0]["mend"]


def test_a_stale_run_is_a_fault() -> None:
    ran("whole", ago=timedelta(hours=2))
    whole, touched = told()
    assert whole["mend"] == ""
    assert "manage.py up" in touched["mend"]
