"""Each result is applied once, in the consumer's own transaction: SQLite, plain psycopg and Django."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from django.db import connection, transaction

from ledger.client.consumer import Inbox, NotInTransaction, Taken
from tests.ledger.client.consumer.events import event
from tests.support.serving import ROOT

FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


class Crash(BaseException):
    """Stands for the end of the process."""


class Books:
    """A consumer as it should be, on SQLite: the mark and the work in one transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(self.opened()) as books, books:
            Inbox("qmark").create(books.cursor())
            books.execute("CREATE TABLE entries (operation_id TEXT, settlement INTEGER)")

    def opened(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=60)

    def apply(self, webhook_id: str = "msg_1", settlement: int = 1, operation_id: str = "op_1") -> Taken:
        with closing(self.opened()) as books, books:
            received = event(webhook_id, settlement, operation_id)
            taken = Inbox("qmark").take(books.cursor(), received)
            if taken is Taken.NEW:
                books.execute("INSERT INTO entries VALUES (?, ?)", (operation_id, settlement))
        return taken

    def entries(self) -> int:
        with closing(self.opened()) as books:
            count: int = books.execute("SELECT count(*) FROM entries").fetchone()[0]
            return count

    def prune(self, received_before: datetime, at_most: int = 10_000) -> int:
        with closing(self.opened()) as books, books:
            return Inbox("qmark").prune(books.cursor(), received_before=received_before, at_most=at_most)


@pytest.fixture
def books(tmp_path: Path) -> Books:
    return Books(tmp_path / "books.sqlite")


@pytest.fixture
def where(transactional_db: None) -> Iterator[str]:
    """A database of PostgreSQL with the inbox and a table of entries, committed."""
    address = psycopg.conninfo.make_conninfo(
        **{
            name: value
            for name, value in connection.get_connection_params().items()
            if name in {"dbname", "user", "password", "host", "port"} and value
        }
    )
    with psycopg.connect(address) as first:
        Inbox().create(first.cursor())
        first.execute("CREATE TABLE consumer_entries (operation_id text)")
    yield address
    with psycopg.connect(address) as last:
        last.execute("DROP TABLE ledger_inbox, ledger_inbox_newest, consumer_entries")


def apply(where: str, *, crash: bool = False) -> Taken:
    with psycopg.connect(where) as books:
        taken = Inbox().take(books.cursor(), event())
        if crash:
            raise Crash
        if taken is Taken.NEW:
            books.execute("INSERT INTO consumer_entries VALUES ('op_1')")
    return taken


def entries(where: str) -> int:
    with psycopg.connect(where) as books:
        row = books.execute("SELECT count(*) FROM consumer_entries").fetchone()
    assert row is not None
    return int(row[0])


# --- SQLite ------------------------------------------------------------------------------------------------


def test_a_duplicate_is_applied_once(books: Books) -> None:
    assert [books.apply() for _ in range(3)] == [Taken.NEW, Taken.DUPLICATE, Taken.DUPLICATE]
    assert books.entries() == 1


def test_an_older_settlement_that_comes_late_is_outdated(books: Books) -> None:
    assert books.apply("msg_2", 2) is Taken.NEW
    assert books.apply("msg_1", 1) is Taken.OUTDATED
    assert books.apply("msg_3", 3) is Taken.NEW
    assert books.apply("msg_4", 1, "op_2") is Taken.NEW
    assert books.entries() == 3


KILLED_BETWEEN_MARK_AND_WORK = """
import os, sys, sqlite3, psycopg
from ledger.client.consumer import Inbox, Taken
from tests.ledger.client.consumer.events import event
driver, paramstyle, where = sys.argv[1:]
books = globals()[driver].connect(where)
assert Inbox(paramstyle).take(books.cursor(), event()) is Taken.NEW
os.kill(os.getpid(), 9)
"""


def killed_between_mark_and_work(*how: str) -> None:
    command = [sys.executable, "-c", KILLED_BETWEEN_MARK_AND_WORK, *how]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -9


def test_a_process_killed_between_mark_and_work_leaves_neither(books: Books) -> None:
    killed_between_mark_and_work("sqlite3", "qmark", str(books.path))
    assert books.apply() is Taken.NEW
    assert books.entries() == 1


def test_many_at_once_on_sqlite(books: Books) -> None:
    results: list[Taken] = []
    at_once = [threading.Thread(target=lambda: results.append(books.apply())) for _ in range(4)]
    for thread in at_once:
        thread.start()
    for thread in at_once:
        thread.join()
    assert sorted(taken.value for taken in results) == ["duplicate", "duplicate", "duplicate", "new"]
    assert books.entries() == 1


def test_a_type_that_is_not_known_leaves_no_mark(books: Books) -> None:
    unknown = event(type="ledger.operation.archived.v1")
    with closing(books.opened()) as opened, opened:
        assert Inbox("qmark").take(opened.cursor(), unknown) is Taken.UNKNOWN_TYPE
    assert books.apply() is Taken.NEW


def test_pruned_marks_make_nothing_new_again(books: Books) -> None:
    for number in (1, 2, 3):
        books.apply(f"msg_{number}", 1, f"op_{number}")
    assert books.prune(datetime.now(UTC) - timedelta(days=1)) == 0
    assert books.prune(FUTURE, at_most=2) == 2
    assert books.prune(FUTURE) == 1
    assert [books.apply(f"msg_{number}", 1, f"op_{number}") for number in (1, 2, 3)] == [Taken.OUTDATED] * 3
    assert books.apply("msg_4", 2, "op_1") is Taken.NEW
    assert books.entries() == 4


def test_sqlite_that_commits_each_statement_is_refused_before_it_marks(books: Books) -> None:
    with closing(sqlite3.connect(books.path, isolation_level=None)) as opened:
        with pytest.raises(NotInTransaction):
            Inbox("qmark").take(opened.cursor(), event())
        opened.execute("BEGIN")
        assert Inbox("qmark").take(opened.cursor(), event()) is Taken.NEW


# --- psycopg -----------------------------------------------------------------------------------------------


def test_a_crash_leaves_neither_mark_nor_work(where: str) -> None:
    with pytest.raises(Crash):
        apply(where, crash=True)
    assert [apply(where), apply(where)] == [Taken.NEW, Taken.DUPLICATE]
    assert entries(where) == 1


def test_a_process_of_psycopg_killed_between_mark_and_work_leaves_neither(where: str) -> None:
    killed_between_mark_and_work("psycopg", "format", where)
    assert [apply(where), apply(where)] == [Taken.NEW, Taken.DUPLICATE]
    assert entries(where) == 1


@pytest.mark.parametrize(("newer_commits", "older_is"), [(True, Taken.OUTDATED), (False, Taken.NEW)])
def test_two_settlements_at_once_by_psycopg(where: str, *, newer_commits: bool, older_is: Taken) -> None:
    """The older waits for the newer, and is OUTDATED only where that one commits."""
    results: list[Taken] = []
    with psycopg.connect(where) as newer:
        assert Inbox().take(newer.cursor(), event("msg_2", 2)) is Taken.NEW
        waiting = threading.Thread(target=lambda: results.append(apply(where)))
        waiting.start()
        _until_somebody_waits(where)
        newer.commit() if newer_commits else newer.rollback()
        waiting.join()
    assert results == [older_is]


@pytest.mark.parametrize(("first_commits", "second_is"), [(True, Taken.DUPLICATE), (False, Taken.NEW)])
def test_two_at_once_by_psycopg(where: str, *, first_commits: bool, second_is: Taken) -> None:
    """The second waits for the first, and is NEW where the first did not commit."""
    results: list[Taken] = []
    with psycopg.connect(where) as first:
        assert Inbox().take(first.cursor(), event()) is Taken.NEW
        waiting = threading.Thread(target=lambda: results.append(apply(where)))
        waiting.start()
        _until_somebody_waits(where)
        first.commit() if first_commits else first.rollback()
        waiting.join()
    assert results == [second_is]
    assert entries(where) == (0 if first_commits else 1)


def test_psycopg_that_commits_each_statement_is_refused_before_it_marks(where: str) -> None:
    with psycopg.connect(where, autocommit=True) as each:
        with pytest.raises(NotInTransaction):
            Inbox().take(each.cursor(), event())
        with each.transaction():
            assert Inbox().take(each.cursor(), event()) is Taken.NEW


def test_pruning_by_psycopg(where: str) -> None:
    apply(where)
    with psycopg.connect(where) as books:
        assert Inbox().prune(books.cursor(), received_before=datetime.now(UTC) - timedelta(days=1)) == 0
        assert Inbox().prune(books.cursor(), received_before=FUTURE) == 1
    assert apply(where) is Taken.OUTDATED


def test_an_asynchronous_cursor_is_no_duplicate() -> None:
    class Asynchronous:
        rowcount = -1

        def execute(self, sql: str, parameters: object, /) -> None:
            """As a coroutine that nobody awaits: nothing happened."""

    with pytest.raises(TypeError, match="no asynchronous one"):
        Inbox().take(Asynchronous(), event())


# --- Django ------------------------------------------------------------------------------------------------


def test_in_a_transaction_of_django(where: str) -> None:
    def apply(*, crash: bool = False) -> Taken:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            taken = Inbox().take(cursor, event())
            if crash:
                raise Crash
            if taken is Taken.NEW:
                cursor.execute("INSERT INTO consumer_entries VALUES ('op_1')")
        return taken

    with pytest.raises(Crash):
        apply(crash=True)
    assert [apply(), apply()] == [Taken.NEW, Taken.DUPLICATE]
    assert entries(where) == 1


def test_django_outside_of_a_transaction_is_refused_before_it_marks(where: str) -> None:
    with connection.cursor() as cursor:
        with pytest.raises(NotInTransaction):
            Inbox().take(cursor, event())
        with transaction.atomic():
            assert Inbox().take(cursor, event()) is Taken.NEW


def _until_somebody_waits(where: str) -> None:
    with psycopg.connect(where, autocommit=True) as watch:
        while not watch.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ).fetchone():
            pass
