"""2xx only after the commit; whatever failed is sent again; what is not the ledger's is answered 400."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from ledger.client.consumer import Event, Inbox, Receiver, Taken, Verifier
from ledger.client.consumer.inbox import Cursor
from tests.ledger.client.consumer.events import NOW, SECRET_TEXT, message


class Books:
    def __init__(self, path: Path) -> None:
        self.path = path
        with self.transaction() as cursor:
            Inbox("qmark").create(cursor)
            cursor.execute("CREATE TABLE entries (webhook_id TEXT)", ())

    @contextmanager
    def transaction(self) -> Iterator[Cursor]:
        with closing(sqlite3.connect(self.path)) as opened, opened:
            yield opened.cursor()

    def enter(self, cursor: Cursor, event: Event) -> None:
        cursor.execute("INSERT INTO entries VALUES (?)", (event.webhook_id,))

    def entered(self) -> list[str]:
        with closing(sqlite3.connect(self.path)) as opened:
            return [row[0] for row in opened.execute("SELECT webhook_id FROM entries ORDER BY rowid")]

    def receiver(self, work: Callable[[Cursor, Event], object] | None = None) -> Receiver:
        return Receiver(
            Verifier(SECRET_TEXT), transaction=self.transaction, inbox=Inbox("qmark"), work=work or self.enter
        )


@pytest.fixture
def books(tmp_path: Path) -> Books:
    return Books(tmp_path / "books.sqlite")


def test_applied_repeated_and_outdated_are_all_received(books: Books) -> None:
    ours = books.receiver()
    sent = [message("msg_2", 2), message("msg_2", 2), message("msg_1", 1)]
    answers = [ours.receive(*one, now=NOW) for one in sent]
    assert [(answer.status, answer.taken) for answer in answers] == [
        (200, Taken.NEW),
        (200, Taken.DUPLICATE),
        (200, Taken.OUTDATED),
    ]
    assert books.entered() == ["msg_2"]


def test_what_is_not_from_the_ledger_is_400_and_touches_nothing(books: Books) -> None:
    headers, body = message()
    answer = books.receiver().receive(headers, body + b" ", now=NOW)
    assert (answer.status, answer.event, books.entered()) == (400, None, [])
    assert "signature" in answer.reason


def test_work_that_fails_is_500_and_done_at_the_next_try(
    books: Books, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(cursor: Cursor, event: Event) -> None:
        books.enter(cursor, event)
        raise LookupError("no such customer: ada@example.org")

    failed = books.receiver(fails).receive(*message(), now=NOW)
    assert (failed.status, failed.reason) == (500, "not applied: LookupError")
    assert "no such customer" in caplog.text
    assert books.entered() == []
    assert books.receiver().receive(*message(), now=NOW).taken is Taken.NEW
    assert books.entered() == ["msg_1"]


def test_a_commit_that_fails_is_500(books: Books) -> None:
    @contextmanager
    def never_commits() -> Iterator[Cursor]:
        with books.transaction() as cursor:
            yield cursor
            raise sqlite3.OperationalError("disk full")

    receiver = Receiver(
        Verifier(SECRET_TEXT), transaction=never_commits, inbox=Inbox("qmark"), work=books.enter
    )
    assert receiver.receive(*message(), now=NOW).status == 500
    assert books.entered() == []


def test_a_transaction_that_swallows_the_error_is_500(books: Books) -> None:
    @contextmanager
    def swallows() -> Iterator[Cursor]:
        with suppress(Exception), books.transaction() as cursor:
            yield cursor

    def fails(_cursor: Cursor, _event: Event) -> None:
        raise LookupError

    receiver = Receiver(Verifier(SECRET_TEXT), transaction=swallows, inbox=Inbox("qmark"), work=fails)
    assert receiver.receive(*message(), now=NOW).status == 500


def test_from_an_event_loop_it_runs_in_a_thread(books: Books) -> None:
    ours = books.receiver()
    answer = asyncio.run(asyncio.to_thread(ours.receive, *message(), now=NOW))
    assert answer.taken is Taken.NEW
