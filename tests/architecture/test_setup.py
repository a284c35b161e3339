"""What is installed, migrated and configured agrees with what is written."""

import os
import re
import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import call_command

from tests.architecture.sources import ROOT

ADDRESS = re.compile(r"https?://|file:|--(extra-)?index-url|--find-links|@ ")


@pytest.mark.django_db
def test_migrations_are_complete() -> None:
    out = StringIO()
    call_command("makemigrations", check=True, dry_run=True, stdout=out)
    assert "No changes detected" in out.getvalue()


def test_a_production_installation_passes_every_deployment_check() -> None:
    environment = {**os.environ, "LEDGER_ENV": "production"}
    environment.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)  # the browser's tests set it for their process
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    answer = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert answer.returncode == 0, answer.stderr


def test_versions_are_exact_and_come_without_an_address() -> None:
    lines = (ROOT / "config/constraints.txt").read_text().splitlines()
    assert [line for line in lines if ADDRESS.search(line)] == []
    assert [line for line in lines if "==" not in line] == []


def test_no_wall_has_an_exception() -> None:
    assert "ignore_imports" not in (ROOT / "pyproject.toml").read_text()
