"""`sweep` and `reconcile`: one pass, or pass after pass until SIGTERM."""

import os
import signal
import threading
from collections import Counter
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from ledger.management.command import LoopCommand
from ledger.transactions import Busy
from tests.ledger.commands.support import run


@dataclass(frozen=True)
class Counts:
    looked_up: int = 0
    settled: int = 0


@dataclass(frozen=True)
class Rows:
    rows: Counter[str] = field(default_factory=Counter)


class Loop(LoopCommand):
    """Answers from a script; a signal arrives during its last pass."""

    def __init__(self, script: list[Counts | Rows | Exception], **options: Any) -> None:
        super().__init__(**options)
        self.script = script

    def one_pass(self) -> Counts | Rows:
        step = self.script.pop(0)
        if not self.script:
            os.kill(os.getpid(), signal.SIGTERM)
        if isinstance(step, Exception):
            raise step
        return step


@pytest.fixture(autouse=True)
def keep_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.management.command.close_old_connections", lambda: None)


def told(loop: Loop, *arguments: str) -> str:
    out = StringIO()
    call_command(loop, *arguments, stdout=out)
    return out.getvalue()


def test_loop_survives_a_busy_database_and_ends_after_the_pass_of_the_signal() -> None:
    before = signal.getsignal(signal.SIGTERM)
    loop = Loop([Counts(2, 1), Busy("locked"), OperationalError("gone"), Counts(), Counts(1, 1)])
    assert told(loop, "--every", "0.05").splitlines() == [
        '{"looked_up": 2, "settled": 1}',
        '{"looked_up": 1, "settled": 1}',
        "Stopped after 5 passes.",
    ]
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_each_row_decided_is_told_too() -> None:
    rows = [Rows(Counter({"confirmed": 2})), Rows()]
    assert told(Loop([*rows]), "--every", "0.05").splitlines()[0] == '{"rows": {"confirmed": 2}}'
    assert told(Loop([*rows]), "--once", "--json") == '{"rows": {"confirmed": 2}}\n'


def test_signal_ends_the_pause_at_once() -> None:
    loop = Loop([Counts(), Counts()])
    late = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
    late.start()
    assert told(loop, "--every", "60") == "Stopped after 1 passes.\n"
    late.join()


def test_one_pass_says_its_counts_for_people() -> None:
    loop = Loop([Counts(3, 0), Counts()])
    assert told(loop, "--once") == "looked up: 3, settled: 0\n"


def test_one_pass_that_is_busy_is_unavailable() -> None:
    with pytest.raises(CommandError, match="Run it again") as stopped:
        call_command(Loop([Busy("locked"), Counts()]), "--once")
    assert stopped.value.returncode == 5


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["sweep", "reconcile"])
def test_pass_over_an_empty_ledger_finds_nothing(command: str) -> None:
    ran = run(command, "--once")
    assert ran.exit == 0
    assert ran.data
    assert not any(ran.data.values())
