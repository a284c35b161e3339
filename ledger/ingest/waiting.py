"""`Prefer: wait=N` (RFC 7240) on the read of an operation: the answer comes when its directive changed.

Whoever waits occupies a thread of the web server, so at most a quarter of a process's threads wait at once,
none of them inside a transaction, or with a connection in hand while it sleeps.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.db import close_old_connections
from django.http import HttpResponse

from ledger.ingest.answers import OperationAnswer
from ledger.rules.directive import Directive
from ledger.transactions import monotonic_s

APPLIED = "Preference-Applied"
MOST_WAIT_S = 30
LOOK_EVERY_S = 0.25
READ_EVERY_S = 1.0
"""How often the operation's head is asked for, and, since time alone changes directives too, all of it."""

NO_PLACE_RETRY_AFTER_S = 2

_NOTHING_TO_DO = frozenset({Directive.HOLD, Directive.RECONCILE, Directive.IN_FLIGHT})
"""Any other directive tells the agent to act, or that it is over: there is nothing to wait for."""

_PREFERENCES = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*")+')
_WAIT = re.compile(r'\s*wait\s*=\s*(?:"(\d{1,9})"|(\d{1,9}))\s*(?:;.*)?', re.IGNORECASE | re.ASCII)


class Places:
    """So many may wait at once in this process."""

    def __init__(self, number: int) -> None:
        self._free = threading.Semaphore(number)

    @contextmanager
    def one_of_them(self) -> Iterator[bool]:
        """Hold a place while the block runs; False where none is free, without waiting for one."""
        placed = self._free.acquire(blocking=False)
        try:
            yield placed
        finally:
            if placed:
                self._free.release()


PLACES = Places(settings.LEDGER_WEB_THREADS // 4)


@dataclass(frozen=True)
class Watched:
    """One operation to wait for. `head` is a number that grows with its history; `permitted` raises where the
    caller may no longer read it: it was let in up to MOST_WAIT_S ago."""

    read: Callable[[], OperationAnswer]
    head: Callable[[], int]
    permitted: Callable[[], object]


def wished_wait_s(prefer: str) -> int | None:
    """How long the caller would wait, at most MOST_WAIT_S; None where the header names no wait that can be
    read. Of several the first counts."""
    found = next((wait for part in _PREFERENCES.findall(prefer) if (wait := _WAIT.fullmatch(part))), None)
    return min(int(found[1] or found[2]), MOST_WAIT_S) if found else None


def waited_for(watched: Watched, response: HttpResponse, prefer: str) -> OperationAnswer:
    """The operation, at once or as the preference wishes."""
    wait_s = wished_wait_s(prefer)
    if wait_s is None:
        return watched.read()
    head, answer = watched.head(), watched.read()
    if answer.directive in _NOTHING_TO_DO:
        with PLACES.one_of_them() as placed:
            if not placed:
                response.headers["Retry-After"] = str(NO_PLACE_RETRY_AFTER_S)
                return answer
            answer = _once_changed(watched, answer, head, wait_s)
        watched.permitted()
    response.headers[APPLIED] = f"wait={wait_s}"
    return answer


def _once_changed(watched: Watched, before: OperationAnswer, head: int, wait_s: int) -> OperationAnswer:
    """Read until another directive is there or the time is over."""
    answer, read_at = before, monotonic_s()
    ends_at = read_at + wait_s
    while answer.directive == before.directive and (left_s := ends_at - monotonic_s()) > 0:
        close_old_connections()  # in the web server's role: back to the pool while this sleeps
        time.sleep(min(LOOK_EVERY_S, left_s))
        newest = watched.head()
        if newest != head or monotonic_s() - read_at >= READ_EVERY_S:
            answer, head, read_at = watched.read(), newest, monotonic_s()
    return answer
