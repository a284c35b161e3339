"""Is a cursor in a transaction? A mark that commits by itself before the work loses the work at a crash."""

from typing import Any

_SQLITE_LEGACY = -1  # sqlite3.LEGACY_TRANSACTION_CONTROL, from Python 3.12 on
_PSYCOPG_IDLE = 0  # psycopg.pq.TransactionStatus.IDLE


class NotInTransaction(Exception):
    """The mark would be committed before the work is: open a transaction around both."""


def check_in_transaction(cursor: Any) -> None:
    """Raises NotInTransaction. Drivers other than Django's, psycopg and sqlite3 are taken at their word."""
    if _commits_each_statement(cursor):
        raise NotInTransaction(
            "this connection commits each statement by itself, so a crash after the mark would lose the work"
        )


def _commits_each_statement(cursor: Any) -> bool:
    if (django := getattr(cursor, "db", None)) is not None:
        return not django.in_atomic_block and bool(django.get_autocommit())
    connection: Any = getattr(cursor, "connection", None)
    if hasattr(connection, "in_transaction"):
        return not connection.in_transaction and _sqlite_autocommit(connection)
    if hasattr(connection, "info") and hasattr(connection, "autocommit"):
        return bool(connection.autocommit) and connection.info.transaction_status == _PSYCOPG_IDLE
    return False


def _sqlite_autocommit(connection: Any) -> bool:
    if (control := getattr(connection, "autocommit", _SQLITE_LEGACY)) != _SQLITE_LEGACY:
        return bool(control)
    return connection.isolation_level is None
