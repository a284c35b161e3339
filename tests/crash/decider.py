"""Presses in processes of their own, each killed at one step: `python -m tests.crash.decider`.

Everything is loaded once. A line of JSON asks for a press and says at which step it dies (0: at none); the
answer says how its process ended, and how many steps it passed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import django

if TYPE_CHECKING:
    from tests.crash.decisions import About, Case

REFUSED, BROKEN = 3, 4


def main() -> None:
    django.setup()
    from tests.crash.decisions import CASES
    from tests.crash.suite.children import freeze

    freeze()
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(_in_a_process(CASES[asked["case"]], asked["about"], asked["dies_at"])), flush=True)


def _in_a_process(case: Case, about: About, dies_at: int) -> Mapping[str, Any]:
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        _press(case, about, dies_at, tells)
    os.close(tells)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(told) as steps:
        return {"ended": os.waitstatus_to_exitcode(status), "steps": steps.read().split()}


def _press(case: Case, about: About, dies_at: int, tells: int) -> None:
    """The whole life of the process; nothing of its parent's is run in it."""
    try:
        _watch(dies_at, tells)
        case.press(about)
        os._exit(0)
    except Exception as error:  # noqa: BLE001
        if type(error).__name__ not in REFUSALS:
            traceback.print_exc()
            os._exit(BROKEN)
        os._exit(REFUSED)


def _watch(dies_at: int, tells: int) -> None:
    from tests.crash.suite.board import Board
    from tests.crash.suite.injection import Injector, install

    @dataclass
    class OneStep(Injector):
        """Counts the steps of every transaction opened by `durable`, and dies at one of them."""

        passed: int = 0

        def opened(self, name: str | None) -> None:
            super().opened(name or "change")

        def reached(self, point: str) -> None:
            self.passed += 1
            os.write(tells, f"{point.rsplit('.', 1)[-1]} ".encode())
            if self.passed == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)

        def between(self, point: str) -> None:
            """The steps are enough."""

    install(OneStep(Board(), tell=lambda **_: None, database=None))  # type: ignore[arg-type]


REFUSALS = frozenset(
    {
        "DecisionRefused",
        "NotPermitted",
        "NotVisible",
        "AccessRefused",
        "AgentRefused",
        "PolicyRefused",
        "RulesChanged",
        "TeamRefused",
        "RedeliveryRefused",
        "DestinationRefused",
        "BadDestination",
        "UnknownAssignee",
        "AbsenceRefused",
        "LinkOver",
    }
)


if __name__ == "__main__":
    main()
