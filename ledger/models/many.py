"""Update many rows in one statement, each with values of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection, models

_Column = tuple[str, str, Any]


def update_many(rows: Sequence[models.Model], names: Iterable[str], *, states: Sequence[str] = ()) -> int:
    """Store these fields of rows of one model as they are set in them; how many rows were changed. With
    `states` only those that still are in the one given for each. No field may be an array."""
    if not rows:
        return 0
    options = rows[0]._meta  # noqa: SLF001  (Django's documented way to a model's columns)
    changed = [_column(options.get_field(name), rows) for name in names]
    asked = [_column(options.pk, rows), *([("state", "text", list(states))] if states else [])]
    columns = [
        *((f"new_{name}", *rest) for name, *rest in changed),
        *((f"old_{n}", *rest) for n, *rest in asked),
    ]
    statement = (
        "UPDATE {table} AS stored SET {assigned} FROM unnest({arrays}) AS given ({names}) WHERE {alike}"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            statement.format(
                table=f'"{options.db_table}"',
                assigned=", ".join(f'"{name}" = "new_{name}"' for name, _, _ in changed),
                arrays=", ".join(f"%s::{kind}[]" for _, kind, _ in columns),
                names=", ".join(f'"{name}"' for name, _, _ in columns),
                alike=" AND ".join(f'stored."{name}" = "old_{name}"' for name, _, _ in asked),
            ),
            [values for _, _, values in columns],
        )
        return int(cursor.rowcount)


def _column(of: Any, rows: Sequence[models.Model]) -> _Column:
    """A field's column, its type in the database, and its value in each row."""
    kind = of.rel_db_type(connection) if of.is_relation else of.db_type(connection)
    return of.column, kind, [of.get_db_prep_save(getattr(row, of.attname), connection) for row in rows]
