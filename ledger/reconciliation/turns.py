"""The clocks that all who ask a provider share, kept by the database: a limit holds for them together."""

from __future__ import annotations

from django.db import connection

# Nobody waits for the disk with this row locked. A server that stops at once may forget the last turns: where
# they are spaced wider than it takes to start again, a provider is asked once sooner for it.
_TAKE = """
    INSERT INTO ledger_turn AS turn (name, free_at)
    SELECT %(name)s, clock_timestamp() + %(spacing)s * interval '1 second'
    FROM set_config('synchronous_commit', 'off', true)
    ON CONFLICT (name) DO UPDATE
    SET free_at = greatest(turn.free_at, clock_timestamp()) + %(spacing)s * interval '1 second'
    WHERE extract(epoch FROM turn.free_at - clock_timestamp()) <= %(within)s
    RETURNING extract(epoch FROM free_at - clock_timestamp()) - %(spacing)s
"""
_HOLD = """
    INSERT INTO ledger_turn AS turn (name, free_at)
    VALUES (%(name)s, clock_timestamp() + %(seconds)s * interval '1 second')
    ON CONFLICT (name) DO UPDATE SET free_at = greatest(turn.free_at, excluded.free_at)
"""
_NEXT = """
    SELECT coalesce(extract(epoch FROM max(free_at) - clock_timestamp()), 0)
    FROM ledger_turn WHERE name = ANY(%(names)s)
"""


class SharedTurns:
    """One statement each, committed at once: nobody waits for a turn inside a transaction."""

    def take(self, name: str, spacing_s: float, within_s: float) -> float | None:
        return _seconds(_TAKE, name=name, spacing=spacing_s, within=within_s)

    def next_in_s(self, *names: str) -> float:
        return _seconds(_NEXT, names=list(names)) or 0.0

    def hold(self, name: str, seconds: float) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_HOLD, {"name": name, "seconds": seconds})


def _seconds(statement: str, **values: str | float | list[str]) -> float | None:
    """None where the statement answers with no row."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row = cursor.fetchone()
        return None if row is None else max(0.0, float(row[0]))
