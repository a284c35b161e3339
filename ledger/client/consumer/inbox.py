"""Which results were applied, kept where they are applied: in the consumer's own database and transaction.

Two small tables of PostgreSQL or SQLite. Because the mark and the work commit together, a crash between them
leaves neither, and the next try finds the work undone.
"""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, Protocol

from ledger.client.consumer.verify import Event

TABLE = "ledger_inbox"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}", re.ASCII)


class Cursor(Protocol):
    """A DB-API cursor (PEP 249) inside an open transaction."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, sql: str, parameters: Sequence[Any], /) -> Any: ...


class Taken(Enum):
    """What a message is to this consumer. Apply it where it is NEW; answer 2xx to all three."""

    NEW = "new"
    DUPLICATE = "duplicate"  # applied before
    OUTDATED = "outdated"  # a later settlement of the operation was applied before


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
                "received_at timestamp DEFAULT CURRENT_TIMESTAMP)"
            ),
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

    def create(self, cursor: Cursor) -> None:
        """Make the tables where they are missing; or put `schema` into a migration."""
        for statement in self.schema:
            cursor.execute(statement, ())

    def take(self, cursor: Cursor, event: Event) -> Taken:
        """Mark the event as taken, in the transaction that the cursor is in. Two at once wait for each other:
        one is NEW, and only if it commits is the other a DUPLICATE."""
        cursor.execute(self._mark, (event.webhook_id, event.operation_id, event.settlement))
        if cursor.rowcount != 1:
            return Taken.DUPLICATE
        cursor.execute(self._raise_newest, (event.operation_id, event.settlement))
        return Taken.NEW if cursor.rowcount == 1 else Taken.OUTDATED
