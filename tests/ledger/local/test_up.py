"""`up` with real processes: it starts, heals, refuses a second copy, and leaves nothing behind."""

import json
import os
import signal
import socket
import urllib.request
from pathlib import Path

import psutil
import pytest

from ledger.management.local.postgres import unsafe_settings
from tests.support.processes import RunningLedger, free_port, wait_until

pytestmark = pytest.mark.crash

HEALS_WITHIN_S = 60.0


def ready(ledger: RunningLedger) -> bool:
    try:
        with urllib.request.urlopen(f"{ledger.address}/readyz", timeout=30) as answer:
            return bool(json.load(answer) == {"status": "ready"})
    except OSError:
        return False


def everything_of(ledger: RunningLedger) -> list[psutil.Process]:
    return [*ledger.children(), *ledger.database_processes()]


def assert_all_gone(processes: list[psutil.Process]) -> None:
    assert [process for process in processes if is_at_work(process)] == []


def is_at_work(process: psutil.Process) -> bool:
    """An orphan that ended may wait for init to take note of it."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_life_of_one_home(running_ledger: RunningLedger) -> None:
    ledger = running_ledger
    assert ready(ledger)

    second = ledger.manage("up", "--port", str(free_port()))
    assert second.returncode == 4
    assert f"already runs on {ledger.home.path} (process {ledger.process.pid})" in second.stderr  # type: ignore[union-attr]

    beside = ledger.manage("migrate", "--check")
    assert beside.returncode == 0, beside.stderr

    running = everything_of(ledger)
    assert ledger.stop(signal.SIGTERM) == 0
    assert_all_gone(running)

    without = ledger.manage("migrate", "--check")
    assert without.returncode == 5
    assert "manage.py up" in without.stderr
    assert "Traceback" not in without.stderr

    ledger.start()
    assert ready(ledger)
    assert ledger.said().count("Creating the database") == 1
    running = everything_of(ledger)
    assert ledger.stop(signal.SIGINT) == 0
    assert_all_gone(running)


@pytest.mark.parametrize("name", ["web", "worker", "deliverer", "beat", "broker", "postgres"])
def test_what_dies_is_started_again(shared_ledger: RunningLedger, name: str) -> None:
    ledger = shared_ledger
    ledger.postmaster().kill() if name == "postgres" else ledger.child(name).kill()
    news = f"{name} started again"
    wait_until(lambda: news in ledger.said(), within_s=HEALS_WITHIN_S, what=news)
    wait_until(lambda: ready(ledger), within_s=HEALS_WITHIN_S, what="ready again")


def test_children_die_with_a_killed_supervisor_and_the_next_start_is_clean(
    running_ledger: RunningLedger,
) -> None:
    running = everything_of(running_ledger)
    assert running_ledger.process is not None
    running_ledger.process.kill()
    running_ledger.process.wait()
    running_ledger.start()
    assert ready(running_ledger)
    assert_all_gone(running)


def test_a_taken_port_is_named(ledger_home_directory: Path) -> None:
    ledger = RunningLedger(ledger_home_directory)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ledger.port))
        taken.listen()
        answer = ledger.manage("up", "--port", str(ledger.port))
    assert answer.returncode == 4
    assert f"Port {ledger.port} cannot be used" in answer.stderr
    assert not ledger.home.database.exists()


def test_a_server_that_may_forget_is_refused(ledger_home_directory: Path) -> None:
    url = os.environ["DATABASE_URL"]
    if not unsafe_settings(url):
        pytest.skip("the tests run on a durable server")
    ledger = RunningLedger(ledger_home_directory, extra_environment={"DATABASE_URL": url})
    answer = ledger.manage("up", "--port", str(ledger.port))
    assert answer.returncode == 3
    assert "fsync" in answer.stderr
