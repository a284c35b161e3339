"""The supervisor on small children of its own: deaths, stubbornness, what a group leaves behind."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest

from ledger.management.local.processes import start
from ledger.management.local.supervisor import ChildFailed, Plan, StopRequested, Supervisor
from tests.support.processes import wait_until

SLEEPS = "import time; time.sleep(60)"
IGNORES_SIGTERM = f"""
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
{SLEEPS}"""
HAS_A_CHILD = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {SLEEPS!r}])
print("two", flush=True)
{SLEEPS}"""
ENDS = "import sys; print('no such setting', flush=True); sys.exit(3)"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def supervisor(told: list[str]) -> Iterator[Supervisor]:
    made = Supervisor(told.append)
    yield made
    made.stop_all()


def plan(tmp_path: Path, code: str, *, says: str = "", stop_within_s: float = 1.5) -> Plan:
    log = tmp_path / "child.log"

    def launch(output: IO[bytes] | None) -> "subprocess.Popen[bytes]":
        return start([sys.executable, "-c", code], output=output)

    return Plan(
        name="child",
        launch=launch,
        log=log,
        is_ready=lambda: says in log.read_text(),
        stop_within_s=stop_within_s,
    )


def test_a_child_that_ignores_the_signal_is_killed_in_time(tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.add(plan(tmp_path, IGNORES_SIGTERM, says="deaf", stop_within_s=0.2))
    process = supervisor.children[0].process
    started_at = time.monotonic()
    supervisor.stop_all()
    assert process.returncode == -signal.SIGKILL
    assert time.monotonic() - started_at < 2


def test_what_a_dead_child_started_ends_with_it(
    tmp_path: Path, supervisor: Supervisor, told: list[str]
) -> None:
    supervisor.add(plan(tmp_path, HAS_A_CHILD, says="two"))
    child = supervisor.children[0].process
    grandchildren = psutil.Process(child.pid).children()
    assert len(grandchildren) == 1
    child.kill()
    child.wait()
    supervisor.look()
    assert told[0].startswith("child was ended by SIGKILL; it starts again in 0.2 s")
    wait_until(lambda: not grandchildren[0].is_running(), within_s=5, what="its child gone")


def test_a_child_that_keeps_ending_is_given_up_with_its_own_words(
    tmp_path: Path, supervisor: Supervisor, told: list[str]
) -> None:
    with pytest.raises(ChildFailed, match="no such setting"):
        supervisor.add(plan(tmp_path, ENDS, says="ready"))
    waits = [line.split("again in ")[1] for line in told if "again in" in line]
    assert waits == ["0.2 s.", "0.4 s.", "0.8 s.", "1.6 s."]


def test_a_failed_step_tells_its_last_words(tmp_path: Path, supervisor: Supervisor) -> None:
    with pytest.raises(ChildFailed, match="no such setting"):
        supervisor.run_to_end(plan(tmp_path, ENDS))


def test_a_stop_is_noticed_while_a_child_is_awaited(tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.stop_requested = True
    with pytest.raises(StopRequested):
        supervisor.add(plan(tmp_path, SLEEPS, says="never"))
    assert not supervisor.children[0].has_died
