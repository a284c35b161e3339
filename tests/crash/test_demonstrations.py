"""The short forms of the demonstrations; the full ones are the same commands with their usual numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITHIN_S = 900.0

pytestmark = [pytest.mark.crash, pytest.mark.slow]


@pytest.mark.parametrize(
    "command",
    [
        ["payments", "--operations", "24", "--seed", "7", "--stops", "3"],
        ["outage", "--attempts", "40", "--absent", "5", "--minutes", "0.4"],
        ["zombie"],
        ["deliveries", "--operations", "60", "--dead-s", "4", "--seed", "7"],
    ],
    ids=lambda command: command[0],
)
def test_it_holds(command: list[str]) -> None:
    name, *options = command
    ran = subprocess.run(
        [sys.executable, "-m", f"tests.crash.{name}", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_S,
    )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr[-4000:]}"
    assert "everything held" in ran.stdout
