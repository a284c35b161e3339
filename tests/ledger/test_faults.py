"""Fault points: armed only where nothing real is at stake, and each one named where it can be hit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core import checks

from ledger.faults import ARMED, POINTS, fault_point

ROOT = Path(__file__).parents[2]


def refusals() -> list[str]:
    return [message.id or "" for message in checks.run_checks() if message.id == "ledger.E001"]


@pytest.mark.parametrize(("development", "armed", "refused"), [
    (False, "leave.before_commit", True),
    (False, "", False),
    (True, "leave.before_commit", False),
])  # fmt: skip
def test_an_armed_fault_point_is_refused_outside_development(
    settings: Any, monkeypatch: pytest.MonkeyPatch, development: bool, armed: str, refused: bool
) -> None:
    settings.DEVELOPMENT = development
    monkeypatch.setenv(ARMED, armed)
    assert bool(refusals()) == refused


def test_a_program_in_production_does_not_start_with_one() -> None:
    environment = {
        **os.environ,
        "LEDGER_ENV": "production",
        "LEDGER_SECRET_KEY": "s" * 50,
        "LEDGER_ALLOWED_HOSTS": "ledger.example.org",
        ARMED: "leave.before_commit",
    }
    ran = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode != 0
    assert "ledger.E001" in ran.stderr


def test_a_point_that_is_not_armed_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARMED, "leave.before_commit")
    fault_point("reconciler.claimed")


def test_every_point_in_the_code_is_one_of_the_list() -> None:
    code = "".join(path.read_text() for path in (ROOT / "ledger").rglob("*.py"))
    assert set(re.findall(r'fault_point\("([^"]+)"\)', code)) <= POINTS
