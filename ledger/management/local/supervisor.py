"""Starts children in order, restarts what dies, and stops them in the opposite order within a bound.

One thread, no callbacks: `Supervisor.watch` looks at each child a few times a second.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from ledger.management.local.processes import signal_group

LOOK_EVERY_S = 0.1
FIRST_BACK_OFF_S = 0.2
LONGEST_BACK_OFF_S = 10.0
STEADY_AFTER_S = 30.0
DEATHS_BEFORE_READY = 4
"""A child that ends this often before it was ever ready will not become so by waiting."""
LARGEST_LOG = 10_000_000


class StopRequested(Exception):
    """Ctrl-C or SIGTERM arrived."""


class ChildFailed(Exception):
    """A child did not become ready; the text holds the end of its log."""


@dataclass(frozen=True)
class Plan:
    """How one child is started, known to be ready, and stopped."""

    name: str
    launch: Callable[[IO[bytes] | None], "subprocess.Popen[bytes]"]
    log: Path | None
    """None: the child speaks on our own terminal."""
    is_ready: Callable[[], bool] = field(default=lambda: True)
    ready_within_s: float = 60.0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within_s: float = 1.5
    """All together stay below ten seconds; whoever takes longer is killed, which a ledger survives."""


class Child:
    """One running child and its history of deaths."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.back_off_s = FIRST_BACK_OFF_S
        self.start_again_at: float | None = None
        self.deaths = 0
        self.start()

    def start(self) -> None:
        self.started_at = time.monotonic()
        self.start_again_at = None
        with _opened_log(self.plan.log) as log:
            self.process = self.plan.launch(log)

    @property
    def has_died(self) -> bool:
        return self.process.poll() is not None

    def look(self) -> str | None:
        """Start the child again where it died and its back-off is over; a sentence about what changed."""
        if not self.has_died:
            return None
        if self.start_again_at is None:
            return self._bury()
        if time.monotonic() < self.start_again_at:
            return None
        self.start()
        return f"{self.plan.name} started again (process {self.process.pid})."

    def stop(self) -> None:
        """Ask the child to stop, and end it and its group where it does not in time."""
        if not self.has_died:
            self.process.send_signal(self.plan.stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(self.plan.stop_within_s)
        signal_group(self.process, signal.SIGKILL)
        self.process.wait()

    def last_words(self) -> str:
        if self.plan.log is None:
            return ""
        return "\n".join(self.plan.log.read_text(errors="replace").splitlines()[-15:])

    def _bury(self) -> str:
        """Plan the next start, and end what a dead child left behind."""
        signal_group(self.process, signal.SIGKILL)
        self.deaths += 1
        now = time.monotonic()
        if now - self.started_at > STEADY_AFTER_S:
            self.back_off_s = FIRST_BACK_OFF_S
        wait_s, self.back_off_s = self.back_off_s, min(self.back_off_s * 2, LONGEST_BACK_OFF_S)
        self.start_again_at = now + wait_s
        return f"{self.plan.name} {_how_it_ended(self.process)}; it starts again in {wait_s:.1f} s."


class Supervisor:
    """The children of one `up`, in the order they were started."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.children: list[Child] = []
        self.tell = tell
        self.stop_requested = False

    def catch_signals(self) -> None:
        """A shell's `&` leaves SIGINT ignored, so both handlers are set in so many words."""
        signal.signal(signal.SIGINT, self._request_stop)
        signal.signal(signal.SIGTERM, self._request_stop)
        signal.signal(signal.SIGHUP, self._request_stop)

    def add(self, plan: Plan) -> None:
        """Start a child and wait until it is ready, watching the others meanwhile."""
        child = Child(plan)
        self.children.append(child)
        give_up_at = time.monotonic() + plan.ready_within_s
        while not plan.is_ready():
            if time.monotonic() > give_up_at or child.deaths >= DEATHS_BEFORE_READY:
                raise ChildFailed(f"{plan.name} does not become ready.\n{child.last_words()}")
            self.look()

    def run_to_end(self, plan: Plan) -> None:
        """Run a child that is meant to end; ChildFailed where its exit code is not 0."""
        child = Child(plan)
        try:
            while not child.has_died:
                self.look()
        finally:
            child.stop()
        if child.process.returncode != 0:
            raise ChildFailed(f"{plan.name} failed.\n{child.last_words()}")

    def watch(self) -> None:
        """Restart what dies, until a stop is requested."""
        while True:
            self.look()

    def look(self) -> None:
        """One look at every child, then a short rest; StopRequested where a signal came."""
        for child in self.children:
            if news := child.look():
                self.tell(news)
        if not self.stop_requested:
            time.sleep(LOOK_EVERY_S)
        if self.stop_requested:
            raise StopRequested

    def stop_all(self) -> None:
        """Stop every child, the last one started first."""
        while self.children:
            self.children.pop().stop()

    def _request_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_requested = True


@contextlib.contextmanager
def _opened_log(path: Path | None) -> Iterator[IO[bytes] | None]:
    """The log to append to; a large one is kept once under another name."""
    if path is None:
        yield None
        return
    if path.exists() and path.stat().st_size > LARGEST_LOG:
        path.replace(path.with_suffix(".log.1"))
    with path.open("ab") as log:
        yield log


def _how_it_ended(process: "subprocess.Popen[bytes]") -> str:
    code = process.returncode
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
