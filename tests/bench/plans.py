"""The plans of what the whole form asks, those that read most first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import connection, transaction

from ledger.queries.invariants import INVARIANTS
from ledger.queries.invariants.scope import Scope

SHOWN = 5


def explained() -> Iterator[str]:
    """`EXPLAIN (ANALYZE, BUFFERS)` of the slowest statements of the checks."""
    plans: list[tuple[float, str, str]] = []
    for check in INVARIANTS:

        def explain(
            execute: Any, sql: str, parameters: Any, many: bool, context: Any, check: Any = check
        ) -> Any:
            if sql.lstrip().startswith(("SELECT", "WITH")):
                with transaction.atomic(), context["connection"].connection.cursor() as cursor:
                    cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", parameters)
                    lines = [line for (line,) in cursor.fetchall()]
                took = float(lines[-1].split()[2])
                plans.append((took, check.__name__, "\n".join(lines)))
            return execute(sql, parameters, many, context)

        with transaction.atomic(), connection.execute_wrapper(explain):
            list(check(Scope()))
    for took, name, plan in sorted(plans, reverse=True)[:SHOWN]:
        yield f"\n{name}: {took:.0f} ms\n{plan}"
