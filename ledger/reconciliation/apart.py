"""One attempt's trouble is its own: whatever happens to it, the pass goes on with the others."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from ledger.models import Operation
from ledger.transactions import DATABASE_GONE, Busy, durable

_T = TypeVar("_T")

logger = logging.getLogger(__name__)


def apart(attempt_id: str, work: Callable[[], _T]) -> _T | None:
    """Do the work about one attempt. None where its rows stayed locked or it failed: it is logged, and due
    again. A database that is gone is everybody's trouble, and raised."""
    try:
        return work()
    except Busy:
        logger.warning("The rows of %s are locked by others; it is left to the next pass", attempt_id)
    except DATABASE_GONE:
        raise
    except Exception:
        logger.exception("The pass goes on without %s", attempt_id)
    return None


def unless_locked(attempt_id: str, work: Callable[[], bool]) -> bool:
    """Do the work in a transaction of its own, unless somebody has the operation locked: then at once False.
    What is due is found again by every pass, so nothing is skipped for good."""
    return bool(apart(attempt_id, lambda: durable(lambda: _is_free(attempt_id) and work())))


def is_locked(attempt_id: str) -> bool:
    """Is somebody at work on the operation of this attempt at this moment?"""
    return not durable(lambda: _is_free(attempt_id))


def _is_free(attempt_id: str) -> bool:
    found = Operation.objects.filter(attempts__pk=attempt_id)
    return found.select_for_update(skip_locked=True, of=("self",)).first() is not None
