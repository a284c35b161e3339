"""What a transaction promises here, and the database's clock."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar

from django.db import InterfaceError, InternalError, OperationalError, connection, transaction
from psycopg import errors

_A = TypeVar("_A")
_T = TypeVar("_T")

_WHOLE_TRANSACTION_AGAIN = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
)
_TRIES = 4

DATABASE_GONE = (OperationalError, InterfaceError)
"""What a statement raises where the database, or its connection, is away."""

_ANSWERS: ContextVar[dict[tuple[Any, ...], Any] | None] = ContextVar("_ANSWERS", default=None)


class Busy(Exception):
    """The rows needed stayed locked by others; nothing was written. Worth asking again in a moment."""


class NotInTransaction(AssertionError):
    """A verb was called outside the transaction of its caller."""


def durable(work: Callable[[], _T]) -> _T:
    """Run `work` as one outermost transaction, whole again (at most 3 times) where rows were contended.

    Raises `Busy` when they still are, OperationalError where the connection was lost; every other error
    passes after a rollback.
    """
    if _ANSWERS.get() is not None:
        raise NotInTransaction("what is remembered for a page is no ground to write on")
    for tries in range(1, _TRIES + 1):
        try:
            with transaction.atomic(durable=True):
                return work()
        except OperationalError as error:
            if not isinstance(error.__cause__, _WHOLE_TRANSACTION_AGAIN):
                raise
            if tries == _TRIES:
                raise Busy("the rows are locked by others") from error
            time.sleep(random.uniform(0, 0.05 * 2**tries))  # noqa: S311
        except InternalError as error:
            if not isinstance(error.__cause__, errors.IdleInTransactionSessionTimeout):
                raise
            raise OperationalError(*error.args) from error
    raise AssertionError("unreachable")


@contextmanager
def one_reading() -> Iterator[None]:
    """Inside, each `remembered` question is put to the database once: for pages, which write nothing."""
    token = _ANSWERS.set({})
    try:
        yield
    finally:
        _ANSWERS.reset(token)


def remembered(ask: Callable[[_A], _T]) -> Callable[[_A], _T]:
    """Let `one_reading` keep the answers of a read about one hashable thing; elsewhere it reads anew."""

    @wraps(ask)
    def asked(about: _A) -> _T:
        answers = _ANSWERS.get()
        if answers is None:
            return ask(about)
        key = (ask, about)
        if key not in answers:
            answers[key] = ask(about)
        found: _T = answers[key]
        return found

    return asked


def require_transaction() -> None:
    """Raise unless a transaction is open; verbs never open their own.

    The block that pytest-django opens around a test does not count: in it every verb would seem called well.
    """
    blocks = [block for block in connection.atomic_blocks if not getattr(block, "_from_testcase", False)]
    if not blocks:
        raise NotInTransaction("this writes several rows that belong together: call it inside durable()")


def database_clock() -> datetime:
    """The database's time now. Read it after the last lock: the transaction's start may be long ago."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now


def monotonic_s() -> float:
    """For spans of this process; never to be compared with the database's clock."""
    return time.monotonic()
