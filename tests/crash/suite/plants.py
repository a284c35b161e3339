"""Bugs that can be planted, so that the suite itself is tested: each must turn it red.

A plant is applied in the lane, after its server runs and before any child is forked: `patch` changes Python
in this process and thereby in every child, `sql` changes the lane's own database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from ledger.management.local.home import Home


@dataclass(frozen=True)
class Plant:
    """One bug. `says`: what is missing, in a few words; `aims`: points worth aiming at to find it."""

    says: str
    patch: Callable[[], None] | None = None
    sql: str = ""
    aims: tuple[str, ...] = ()


def plant(name: str, home: Home) -> None:
    """Plant the bug of this name in this lane. KeyError where there is none."""
    bug = PLANTS[name]
    if bug.patch is not None:
        bug.patch()
    if bug.sql:
        with psycopg.connect(home.database_url, autocommit=True) as connection:
            connection.execute(bug.sql.encode())


def _no_operation_lock() -> None:
    """The operation's row is read without a lock, so that two verbs about it interleave."""
    from django.db.models import QuerySet

    from ledger.models import Operation

    locked = QuerySet.select_for_update

    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.all() if self.model is Operation else locked(self, *args, **kwargs)

    QuerySet.select_for_update = read  # type: ignore[method-assign]


PLANTS: Mapping[str, Plant] = {
    "no operation lock": Plant("verbs about one operation interleave", patch=_no_operation_lock),
}
