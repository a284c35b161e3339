"""Which results were applied, kept where they are applied: in the consumer's own database and transaction.

Two small tables of PostgreSQL or SQLite. Because the mark and the work commit together, a crash between them
leaves neither, and the next try finds the work undone.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Literal, Protocol

from ledger.client.consumer.event import Event
from ledger.client.consumer.transaction import check_in_transaction

TABLE = "ledger_inbox"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}", re.ASCII)


class Cursor(Protocol):
    """A DB-API cursor (PEP 249) inside an open transaction."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, sql: str, parameters: Sequence[Any], /) -> Any: ...


class Taken(Enum):
    """What a message is to this consumer. Apply it where it is NEW; answer 2xx to all four."""

    NEW = "new"
    DUPLICATE = "duplicate"  # taken before
    OUTDATED = "outdated"  # a later settlement of the operation was taken before
    UNKNOWN_TYPE = "unknown type"  # settles nothing that this kit knows of; not marked


class Inbox:
    """The marks. `paramstyle` is the driver's: "format" (psycopg, Django), "qmark" (sqlite3)."""

    def __init__(self, paramstyle: Literal["format", "qmark"] = "format", *, table: str = TABLE) -> None:
        if not _NAME.fullmatch(table):
            raise ValueError("a table's name has lower-case letters, digits and underscores")
        mark = {"format": "%s", "qmark": "?"}[paramstyle]
        self.schema = (
            (
                f"CREATE TABLE IF NOT EXISTS {table} (webhook_id varchar(64) PRIMARY KEY, "
                "operation_id varchar(64) NOT NULL, settlement integer NOT NULL, "
                "received_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP)"
            ),
            f"CREATE INDEX IF NOT EXISTS {table}_received ON {table} (received_at)",
            (
                f"CREATE TABLE IF NOT EXISTS {table}_newest (operation_id varchar(64) PRIMARY KEY, "
                "settlement integer NOT NULL)"
            ),
        )
        self._mark = (
            f"INSERT INTO {table} (webhook_id, operation_id, settlement) "  # noqa: S608
            f"VALUES ({mark}, {mark}, {mark}) ON CONFLICT (webhook_id) DO NOTHING"
        )
        self._raise_newest = (
            f"INSERT INTO {table}_newest AS newest (operation_id, settlement) VALUES ({mark}, {mark}) "  # noqa: S608
            "ON CONFLICT (operation_id) DO UPDATE SET settlement = excluded.settlement "
            "WHERE newest.settlement < excluded.settlement"
        )
        self._prune = (
            f"DELETE FROM {table} WHERE webhook_id IN "  # noqa: S608
            f"(SELECT webhook_id FROM {table} WHERE received_at < {mark} LIMIT {mark})"
        )

    def create(self, cursor: Cursor) -> None:
        """Make the tables where they are missing; or put `schema` into a migration."""
        for statement in self.schema:
            cursor.execute(statement, ())

    def take(self, cursor: Cursor, event: Event) -> Taken:
        """Mark the event as taken, in the transaction that the cursor is in. Two at once wait for each other:
        one is NEW, and only if it commits is the other a DUPLICATE. Raises NotInTransaction."""
        check_in_transaction(cursor)
        if not event.settles:
            return Taken.UNKNOWN_TYPE
        if not _wrote(cursor, self._mark, (event.webhook_id, event.operation_id, event.settlement)):
            return Taken.DUPLICATE
        newest = _wrote(cursor, self._raise_newest, (event.operation_id, event.settlement))
        return Taken.NEW if newest else Taken.OUTDATED

    def prune(self, cursor: Cursor, *, received_before: datetime, at_most: int = 10_000) -> int:
        """Forget marks that are older; how many they were. Safe at any age: the highest settlement of each
        operation is kept for ever, so that what comes again after its mark is gone is OUTDATED, not NEW."""
        before = received_before.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S+00:00")
        cursor.execute(self._prune, (before, at_most))
        return cursor.rowcount


def _wrote(cursor: Cursor, statement: str, values: Sequence[Any]) -> bool:
    """Whether a row was written. A driver that does not say must not be read as "none", a duplicate."""
    cursor.execute(statement, values)
    if cursor.rowcount not in {0, 1}:
        raise TypeError("a plain DB-API cursor is needed, one that counts rows: no asynchronous one")
    return cursor.rowcount == 1
