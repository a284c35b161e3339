"""A consumer on SQLite, as it should be and as it should not: `python -m …consumer DIR PORT SECRET KIND`.

POST anywhere receives; GET answers a line for each applied result, from the database. Each kind is one way.
It dies in its work as long as there is a file DIR/die. DIR/received has a line for each request.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ledger.client.consumer import Event, Inbox, NotFromTheLedger, Receiver, Taken, Verifier
from ledger.client.consumer.event import read_event
from ledger.client.consumer.inbox import Cursor

WORK_S = 0.2
"""What the work takes, where a crash must be able to fall into it."""


class Consumer:
    """`handle` answers a status; `afterwards` runs once that is sent."""

    def __init__(self, directory: Path, secret: str) -> None:
        self.directory = directory
        self.books = directory / "books.sqlite"
        self.verifier = Verifier(secret)
        self.inbox = Inbox("qmark")
        with self.transaction() as cursor:
            self.inbox.create(cursor)
            cursor.execute("CREATE TABLE IF NOT EXISTS entries (webhook_id TEXT)", ())

    @contextmanager
    def transaction(self) -> Iterator[Cursor]:
        with closing(sqlite3.connect(self.books, timeout=60)) as opened, opened:
            yield opened.cursor()

    def enter(self, cursor: Cursor, event: Event) -> None:
        cursor.execute("INSERT INTO entries VALUES (?)", (event.webhook_id,))

    def work(self, cursor: Cursor, event: Event) -> None:
        self.take_time()
        self.enter(cursor, event)

    def take_time(self) -> None:
        if (self.directory / "die").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(WORK_S)

    def apply_once(self, event: Event) -> None:
        with self.transaction() as cursor:
            if self.inbox.take(cursor, event) is Taken.NEW:
                self.enter(cursor, event)

    def effects(self) -> str:
        with closing(sqlite3.connect(self.books, timeout=60)) as opened:
            return "".join(f"{row[0]}\n" for row in opened.execute("SELECT webhook_id FROM entries"))

    def handle(self, headers: Mapping[str, str], body: bytes) -> int:
        receiver = Receiver(self.verifier, transaction=self.transaction, inbox=self.inbox, work=self.work)
        return receiver.receive(headers, body).status

    def afterwards(self) -> None:
        """Nothing: what is answered is done."""


class NoSignature(Consumer):
    """Believes whatever comes."""

    def handle(self, headers: Mapping[str, str], body: bytes) -> int:
        self.apply_once(read_event({name.lower(): value for name, value in headers.items()}, body))
        return 200


class RewritesJson(Consumer):
    """Verifies what its framework parsed and it wrote anew."""

    def handle(self, headers: Mapping[str, str], body: bytes) -> int:
        self.apply_once(self.verifier.verify(headers, json.dumps(json.loads(body)).encode()))
        return 200


class NoDuplicates(Consumer):
    """Has never heard of a message that comes twice."""

    def handle(self, headers: Mapping[str, str], body: bytes) -> int:
        event = self.verifier.verify(headers, body)
        with self.transaction() as cursor:
            self.enter(cursor, event)
        return 200


class AppliesOutdated(Consumer):
    """Knows every id, and nothing of settlements."""

    def handle(self, headers: Mapping[str, str], body: bytes) -> int:
        event = self.verifier.verify(headers, body)
        with self.transaction() as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS seen (webhook_id TEXT PRIMARY KEY)", ())
            cursor.execute("INSERT INTO seen VALUES (?) ON CONFLICT DO NOTHING", (event.webhook_id,))
            if cursor.rowcount and event.settles:
                self.enter(cursor, event)
        return 200


class MarksFirst(Consumer):
    """The mark has a transaction of its own, before the work's."""

    def handle(self, headers: Mapping[str, str], body: bytes) -> int:
        event = self.verifier.verify(headers, body)
        with self.transaction() as cursor:
            taken = self.inbox.take(cursor, event)
        if taken is Taken.NEW:
            self.take_time()
            with self.transaction() as cursor:
                self.enter(cursor, event)
        return 200


class AnswersEarly(Consumer):
    """2xx first, the work after it, in memory only."""

    def __init__(self, directory: Path, secret: str) -> None:
        super().__init__(directory, secret)
        self.waiting: list[Callable[[], None]] = []

    def handle(self, headers: Mapping[str, str], body: bytes) -> int:
        event = self.verifier.verify(headers, body)
        self.waiting.append(lambda: self.apply_once(event))
        return 200

    def afterwards(self) -> None:
        time.sleep(WORK_S)
        while self.waiting:
            self.waiting.pop(0)()


class ForgetsItsDisk(Consumer):
    """Does not come back after a crash."""

    def __init__(self, directory: Path, secret: str) -> None:
        if (directory / "books.sqlite").exists():
            sys.exit("the disk is locked by a process that is dead")
        super().__init__(directory, secret)


KINDS: dict[str, type[Consumer]] = {
    "right": Consumer,
    "no_signature": NoSignature,
    "rewrites_json": RewritesJson,
    "no_duplicates": NoDuplicates,
    "applies_outdated": AppliesOutdated,
    "marks_first": MarksFirst,
    "answers_early": AnswersEarly,
    "does_not_return": ForgetsItsDisk,
}


class Handler(BaseHTTPRequestHandler):
    consumer: Consumer

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.note()
        try:
            status = self.consumer.handle(dict(self.headers.items()), body)
        except (NotFromTheLedger, ValueError):
            status = 400
        self.answer(status, "")
        self.consumer.afterwards()

    def note(self) -> None:
        told = [self.headers.get(name, "-") for name in ("webhook-id", "Ledger-Replay")]
        with (self.consumer.directory / "received").open("a") as file:
            file.write(" ".join(told) + "\n")

    def do_GET(self) -> None:
        self.answer(200, self.consumer.effects())

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


class Server(ThreadingHTTPServer):
    request_queue_size = 64


def main() -> None:
    directory, port, secret, kind = sys.argv[1:]
    Handler.consumer = KINDS[kind](Path(directory), secret)
    Server(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
