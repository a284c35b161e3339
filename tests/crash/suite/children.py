"""Warm children: forked with Django loaded and no connection open, killed, reaped, and forked again."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import logging
import os
import random
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MOST_BYTES = 1_000_000
PLANNED = frozenset({"Struck", "OperationalError", "InterfaceError", "Busy"})
"""Errors that a blow explains. Any other one is a fault of the product, whatever the database made of it."""
_PR_SET_PDEATHSIG = 1
Command = dict[str, Any]
Body = Callable[["Line"], None]


class ChildFailed(Exception):
    """A child that may not fail did; the text is its traceback."""


@dataclass(frozen=True)
class Line:
    """A child's end: commands come in, words go out, whole or not at all."""

    wire: socket.socket

    def say(self, **what: Any) -> None:
        self.wire.send(json.dumps(what, default=str).encode())

    def next(self) -> Command:
        raw = self.wire.recv(MOST_BYTES)
        if not raw:
            os._exit(0)
        command: Command = json.loads(raw)
        return command

    def answer_forever(self, answer: Callable[[Command], Any]) -> None:
        """Answer every command; an error is an answer too."""
        while True:
            command = self.next()
            try:
                self.say(done=answer(command))
            except Exception as error:  # noqa: BLE001  (whatever it is, the lane is told)
                if type(error).__name__ not in PLANNED:
                    self.say(unplanned=f"{type(error).__name__}: {error}"[:500])
                self.say(
                    error=f"{type(error).__name__}: {error}"[:2000], trace=traceback.format_exc()[-6000:]
                )


class Unplanned(logging.Handler):
    """Tells the lane of every error in a log that no blow explains."""

    def __init__(self, line: Line) -> None:
        super().__init__(logging.ERROR)
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if type(error).__name__ not in PLANNED:
            self._line.say(unplanned=f"{type(error).__name__}: {error}"[:500])


@dataclass(frozen=True)
class Broker:
    """Stands for the product's own towards its messages: the lane is told of each, and may lose it."""

    line: Line

    def send_task(self, name: str, **_: Any) -> None:
        self.line.say(hint=name)


@dataclass
class Child:
    """The lane's handle of one child. `life` counts its processes from 1; `hints`: messages of
    settlements that nobody has taken yet."""

    name: str
    body: Body
    pid: int = 0
    life: int = 0
    wire: socket.socket | None = None
    command: Command | None = None
    stopped: bool = False
    struck: Command | None = None
    heard: list[Command] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)
    hints: int = 0

    @property
    def life_id(self) -> str:
        return f"{self.name}.{self.life}"

    @property
    def idle(self) -> bool:
        return self.pid > 0 and self.command is None and not self.stopped

    def fork(self) -> None:
        """Start its next life."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.life += 1
        lane = os.getpid()
        pid = os.fork()
        if pid == 0:
            ours.close()
            _live(self, Line(theirs), lane)
        theirs.close()
        self.pid, self.wire, self.command, self.stopped, self.struck = pid, ours, None, False, None
        self.heard.clear()

    def tell(self, **command: Any) -> None:
        """Give it something to do; it answers later."""
        assert self.wire is not None
        self.command = command
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wire.send(json.dumps(command).encode())

    def listen(self) -> None:
        """Take what it has said. The answer to its command makes it idle again."""
        assert self.wire is not None
        while True:
            try:
                raw = self.wire.recv(MOST_BYTES, socket.MSG_DONTWAIT)
            except (BlockingIOError, ConnectionResetError):
                return
            if not raw:
                return
            said: Command = json.loads(raw)
            if "struck" in said:
                self.struck = said
            elif "hint" in said:
                self.hints += 1
            elif "unplanned" in said:
                self.unplanned.append(f"{self.life_id}: {said['unplanned']}")
            else:
                self.command = None
                self.heard.append(said)

    def look(self) -> str:
        """What has become of the process: alive, stopped or dead."""
        if self.pid == 0:
            return "dead"
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if pid == 0:
            return "stopped" if self.stopped else "alive"
        if os.WIFSTOPPED(status):
            self.stopped = True
            return "stopped"
        if os.WIFCONTINUED(status):
            self.stopped = False
            return "alive"
        self.listen()
        if not _was_killed(status):
            self.unplanned.append(f"{self.life_id} ended by itself: status {status}")
        self._forget()
        return "dead"

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self.stopped = False

    def kill(self) -> None:
        """Kill it and wait for its end."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._forget()

    def _forget(self) -> None:
        self.pid, self.stopped = 0, False
        if self.wire is not None:
            self.wire.close()
            self.wire = None


def _was_killed(status: int) -> bool:
    """By a blow, or as its consumer was told to."""
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _live(child: Child, line: Line, lane: int) -> None:
    """The whole life of a forked process. It never returns, and never runs the lane's clean-up."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != lane:
            os._exit(1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        random.seed()
        child.body(line)
    except BaseException:  # noqa: BLE001  (nothing of the lane's may run here)
        traceback.print_exc(file=sys.stderr)
        sys.stderr.flush()
    finally:
        os._exit(1)


def freeze() -> None:
    """Before the first fork: let children share what is loaded instead of copying it."""
    gc.collect()
    gc.freeze()
