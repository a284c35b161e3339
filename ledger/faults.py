"""Named places where tests kill this process for real. Refused by a system check in production."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

ARMED = "LEDGER_FAULT_POINT"
"""Environment: the name of the one point at which this process kills itself."""

POINTS = frozenset(
    {
        "reconciler.claimed",
        "reconciler.answered",
        "reconciler.before_commit",
        "sender.leave_committed",
        "sender.before_send",
        "sender.sent",
        "sender.before_commit",
        "leave.before_commit",
        "decision.before_commit",
        "delivery.claimed",
        "delivery.sent",
        "delivery.before_commit",
    }
)

watchers: list[Callable[[str], None]] = []
"""Who else is told of each point: the crash suite, in the processes it forks. Empty in production."""


def fault_point(name: str) -> None:
    """Die by SIGKILL here if this point is armed; otherwise nothing."""
    if os.environ.get(ARMED) == name:
        os.kill(os.getpid(), signal.SIGKILL)
    for watcher in watchers:
        watcher(name)
