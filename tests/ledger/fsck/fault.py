"""A planted fault: what a bug of ours, or a hand in the database, could do, and who must find it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from ledger.queries.invariants.scope import Check

NOWHERE = "nowhere"


@dataclass(frozen=True)
class Fault:
    """`subject` names what must be found: a story of `many_states`, or the text itself.

    `touched` is the story in whose operation it is, where the subject does not say; NOWHERE where it is in
    none, or in two.
    `code` plants what is no row.
    """

    check: Check
    subject: str
    sql: str = "SELECT 1"
    touched: str = ""
    code: Callable[[], AbstractContextManager[None]] = nullcontext

    def __str__(self) -> str:
        return f"{self.check.__name__}-{self.subject}"


def without(table: str, *constraints: str) -> str:
    """The statements that take constraints away."""
    return "".join(f"ALTER TABLE {table} DROP CONSTRAINT {name}; " for name in constraints)
