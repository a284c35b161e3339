"""Inside a child: strike at the points where the plan says so.

The boundaries of the database are found without touching product code: the opening of an outermost
transaction, each statement in it, and its commit are wrapped in the children only.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import psycopg
from django.db import OperationalError, connection
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.transaction import Atomic

from ledger import faults
from tests.crash.suite import points
from tests.crash.suite.board import Board
from tests.crash.suite.compressed import compress
from tests.crash.suite.plan import Fault

BROKEN_WITHIN_S = 1.0


class Struck(Exception):
    """The error that was planned here."""


class AnswerLost(Exception):
    """The answer that was about to be given is lost on its way."""


@dataclass
class Injector:
    """What this child is to suffer. `tell` says it to the lane, which forks or resumes it."""

    board: Board
    tell: Callable[..., None]
    database: Path
    armed: Sequence[Fault] = ()
    _here: threading.local = field(default_factory=threading.local)
    _one_blow: threading.Lock = field(default_factory=threading.Lock)

    def obey(self, command: Mapping[str, Any]) -> None:
        """Be armed with these faults, and as patient as the lane says. A blow that another thread has begun
        falls first: who has answered is not killed by what was planned before."""
        with self._one_blow:
            self.armed = [Fault(**fault) for fault in command["faults"]]
        compress(command["patience"])

    @property
    def last_transaction(self) -> str | None:
        """The name of the transaction that is open in this thread, or of the last one."""
        return getattr(self._here, "name", None)

    def reached(self, point: str) -> None:
        """Say that a point is passed; what is planned there happens."""
        self.board.passed(point)
        for slot, fault in enumerate(self.armed):
            if fault.point == point:
                self._count(slot, fault)

    def _count(self, slot: int, fault: Fault) -> None:
        with self._one_blow:
            if self.board.count(slot) == fault.nth and self.board.take(slot):
                self._strike(fault)

    def _strike(self, fault: Fault) -> None:
        self.board.struck(fault.point, fault.kind)
        self.tell(struck=fault.point, kind=fault.kind, hold_ms=fault.hold_ms)
        _STRIKES[fault.kind](self, fault)

    def _kill(self, _fault: Fault) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _stop(self, _fault: Fault) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def _error(self, fault: Fault) -> NoReturn:
        self._here.failed = True
        raise Struck(fault.point)

    def _lose(self, fault: Fault) -> NoReturn:
        raise AnswerLost(fault.point)

    def _cut(self, fault: Fault) -> None:
        with socket.socket(fileno=os.dup(_wire())) as wire:
            wire.shutdown(socket.SHUT_RDWR)
        _after_commit_it_looks_broken(fault)

    def _end_backend(self, fault: Fault) -> None:
        backend = connection.connection.info.backend_pid
        with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [backend])
        _wait_until_broken()
        _after_commit_it_looks_broken(fault)

    def _stop_postgres(self, fault: Fault) -> None:
        os.kill(int((self.database / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        _wait_until_broken()
        _after_commit_it_looks_broken(fault)

    # --- where a transaction is ---------------------------------------------------------------------------

    def opened(self, name: str | None) -> None:
        """`None`: nothing yet, in a new request."""
        self._here.name, self._here.inside = name, name is not None
        self._here.failed = self.has_failed and name is not None

    @property
    def has_failed(self) -> bool:
        """Has a planned error been raised in this thread, since its request began?"""
        return getattr(self._here, "failed", False)

    def closed(self) -> None:
        self._here.inside = False

    def step(self, step: str) -> None:
        """A step of the transaction at hand, if it is one of the product's."""
        if getattr(self._here, "inside", False):
            self.reached(f"{self._here.name}.{step}")

    def between(self, point: str) -> None:
        """A fault point in the product; its commits are found here without one."""
        if point in points.BETWEEN:
            self.reached(point)


_STRIKES: dict[str, Callable[[Injector, Fault], None]] = {
    "kill": Injector._kill,
    "stop": Injector._stop,
    "error": Injector._error,
    "lost": Injector._lose,
    "cut": Injector._cut,
    "backend": Injector._end_backend,
    "postgres": Injector._stop_postgres,
}


def _wire() -> int:
    return int(connection.connection.pgconn.socket)


def _wait_until_broken() -> None:
    """The server's last word, or the end of the connection, has arrived."""
    select.select([_wire()], [], [], BROKEN_WITHIN_S)


def _after_commit_it_looks_broken(fault: Fault) -> None:
    """The server has committed; what the program sees is an error in the middle of its commit."""
    if fault.point.endswith(".after_commit"):
        raise OperationalError("the connection was lost while the commit was answered")


def install(injector: Injector) -> None:
    """Watch this process's transactions and fault points from now on."""
    _watch_ends_of_transactions(injector)
    _watch_statements(injector)
    faults.watchers.append(injector.between)


def _watch_ends_of_transactions(injector: Injector) -> None:
    enter, leave = Atomic.__enter__, Atomic.__exit__
    commit = DatabaseWrapper._commit  # type: ignore[attr-defined]

    def entered(self: Any) -> None:
        enter(self)
        if self.durable:
            injector.opened(_name_of_caller(sys._getframe(1)))

    def left(self: Any, *how: Any) -> None:
        try:
            _leave(
                injector, lambda *instead: leave(self, *(instead or how)), ends=self.durable and not how[0]
            )
        finally:
            if self.durable:
                injector.closed()

    def committed(self: Any) -> None:
        commit(self)
        injector.step("after_commit")

    Atomic.__enter__, Atomic.__exit__ = entered, left  # type: ignore[method-assign]
    DatabaseWrapper._commit = committed  # type: ignore[attr-defined]


def _leave(injector: Injector, leave: Callable[..., None], *, ends: bool) -> None:
    """Leave a transaction; where it is about to be committed, an error that strikes rolls it back."""
    try:
        if ends:
            injector.step("before_commit")
    except Struck as struck:
        leave(Struck, struck, struck.__traceback__)
        raise
    leave()


def _watch_statements(injector: Injector) -> None:
    def statement(execute: Callable[..., Any], *asked: Any) -> Any:
        injector.step("statement")
        return execute(*asked)

    def connected(connection: Any, **_: object) -> None:
        if statement not in connection.execute_wrappers:
            connection.execute_wrappers.append(statement)

    connection_created.connect(connected, weak=False)


def _name_of_caller(durable: FrameType) -> str | None:
    """The transaction's name, from the frame of `durable` that opened it."""
    caller = durable.f_back
    if durable.f_code.co_name != "durable" or caller is None:
        return None
    qualified = f"{caller.f_globals['__name__']}.{caller.f_code.co_qualname.split('.<locals>')[0]}"
    if qualified == points.CALL_VERB:
        return points.VERBS.get(caller.f_locals["verb"].__name__)
    return points.TRANSACTIONS.get(qualified)
