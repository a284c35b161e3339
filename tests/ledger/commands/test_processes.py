"""Commands as real processes: what a shell script sees."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.db import connection

from ledger.models import Pulse, Tenant
from tests.support.beside import database_url_of_tests

ROOT = Path(__file__).parents[3]


def manage(*arguments: str, database: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DATABASE_URL": database, "LEDGER_LOG_LEVEL": "WARNING"}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def database(transactional_db: None) -> str:
    """The address of the test database, for another process."""
    return database_url_of_tests()


def test_exit_codes_and_streams_tell_what_happened(database: str) -> None:
    made = manage("create_tenant", "acme", "--json", database=database)
    assert (made.returncode, json.loads(made.stdout)["tenant"]) == (0, "acme")
    assert Tenant.objects.filter(slug="acme").exists()
    again = manage("create_tenant", "acme", database=database)
    assert (again.returncode, again.stdout) == (4, "")
    assert "already; nothing was changed" in again.stderr
    assert manage("create_tenant", database=database).returncode == 2


def test_fault_found_is_exit_one(database: str) -> None:
    assert manage("fsck", database=database).returncode == 0
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE ledger_vote DISABLE TRIGGER USER")
    try:
        found = manage("fsck", database=database)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE ledger_vote ENABLE TRIGGER USER")
    assert found.returncode == 1
    assert "triggers_are_there_and_enabled: - ledger_vote pgtrigger_set_once" in found.stdout


@pytest.mark.parametrize(
    "address", ["postgresql://nobody@127.0.0.1:1/none", "postgresql:///none?host=/nonexistent"]
)
def test_no_database_is_exit_five_with_the_mend(address: str) -> None:
    failed = manage("create_tenant", "acme", "--json", database=address)
    assert failed.returncode == 5
    assert json.loads(failed.stdout)["error"] == "unavailable"
    assert "manage.py up" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_loop_runs_until_sigterm_and_ends_well(database: str) -> None:
    environment = {**os.environ, "DATABASE_URL": database, "LEDGER_LOG_LEVEL": "WARNING"}
    command = [sys.executable, "manage.py", "sweep", "--every", "0.05"]
    loop = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        give_up_at = time.monotonic() + 30
        while not Pulse.objects.filter(name="sweep").exists() and time.monotonic() < give_up_at:
            assert loop.poll() is None
        loop.send_signal(signal.SIGTERM)
        said, _ = loop.communicate(timeout=10)
    finally:
        loop.kill()
    assert loop.returncode == 0
    assert said.startswith("Stopped after ")
