"""Each result is applied once, in the consumer's own transaction: SQLite, plain psycopg and Django."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import psycopg
import pytest
from django.db import connection, transaction

from ledger.client.consumer import Event, Inbox, Taken


def event(webhook_id: str = "msg_1", settlement: int = 1, operation_id: str = "op_1") -> Event:
    return Event(
        webhook_id=webhook_id,
        delivery_id="dlv_1",
        type="ledger.operation.confirmed.v1",
        operation_id=operation_id,
        operation_key="invoice:7",
        outcome="confirmed",
        settlement=settlement,
        result_ref="re_1",
        replay=False,
        document={},
    )


@pytest.fixture
def books(tmp_path: Path) -> sqlite3.Connection:
    books = sqlite3.connect(tmp_path / "books.sqlite")
    with books:
        Inbox("qmark").create(books.cursor())
        books.execute("CREATE TABLE entries (operation_id TEXT, result_ref TEXT)")
    return books


def apply(books: sqlite3.Connection, received: Event, *, crash: bool = False) -> Taken:
    """A consumer as it should be: the mark and the work in one transaction."""
    with books:
        taken = Inbox("qmark").take(books.cursor(), received)
        if taken is Taken.NEW:
            books.execute("INSERT INTO entries VALUES (?, ?)", (received.operation_id, received.result_ref))
        if crash:
            raise KeyboardInterrupt
    return taken


def entries(books: sqlite3.Connection) -> int:
    count: int = books.execute("SELECT count(*) FROM entries").fetchone()[0]
    return count


def test_a_duplicate_is_applied_once(books: sqlite3.Connection) -> None:
    assert [apply(books, event()) for _ in range(3)] == [Taken.NEW, Taken.DUPLICATE, Taken.DUPLICATE]
    assert entries(books) == 1


def test_a_crash_leaves_neither_mark_nor_work(books: sqlite3.Connection) -> None:
    with pytest.raises(KeyboardInterrupt):
        apply(books, event(), crash=True)
    assert entries(books) == 0
    assert apply(books, event()) is Taken.NEW
    assert entries(books) == 1


def test_an_older_settlement_that_comes_late_is_outdated(books: sqlite3.Connection) -> None:
    assert apply(books, event("msg_2", 2)) is Taken.NEW
    assert apply(books, event("msg_1", 1)) is Taken.OUTDATED
    assert apply(books, event("msg_3", 3)) is Taken.NEW
    assert apply(books, event("msg_4", 1, "op_2")) is Taken.NEW
    assert entries(books) == 3


@pytest.mark.django_db
def test_in_a_transaction_of_django() -> None:
    inbox = Inbox()
    with transaction.atomic(), connection.cursor() as cursor:
        inbox.create(cursor)
        assert inbox.take(cursor, event()) is Taken.NEW
        assert inbox.take(cursor, event()) is Taken.DUPLICATE


@pytest.mark.django_db(transaction=True)
def test_two_at_once_by_psycopg() -> None:
    """The second waits for the first, and is NEW where the first did not commit."""
    inbox, where = Inbox(), _where()
    with psycopg.connect(where) as first:
        inbox.create(first.cursor())
    results: list[Taken] = []

    def second() -> None:
        with psycopg.connect(where) as other:
            results.append(inbox.take(other.cursor(), event()))

    try:
        with psycopg.connect(where) as first:
            assert inbox.take(first.cursor(), event()) is Taken.NEW
            waiting = threading.Thread(target=second)
            waiting.start()
            _until_somebody_waits(where)
            first.rollback()
            waiting.join()
        assert results == [Taken.NEW]
    finally:
        with psycopg.connect(where) as last:
            last.execute("DROP TABLE ledger_inbox, ledger_inbox_newest")


def _where() -> str:
    return psycopg.conninfo.make_conninfo(
        **{
            name: value
            for name, value in connection.get_connection_params().items()
            if name in {"dbname", "user", "password", "host", "port"} and value
        }
    )


def _until_somebody_waits(where: str) -> None:
    with psycopg.connect(where, autocommit=True) as watch:
        while not watch.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ).fetchone():
            pass
