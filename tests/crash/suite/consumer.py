"""The consumer child: the consumer kit behind real HTTP, on a disk of its own, which counts what it applied.

One process plays every consumer of its lane, each with an inbox of its own, at `/<slug>/<number>`. How it
treats a try stands in the schedule's orders. Which word comes next stands on its disk, and so outlives it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import signal
import socket
import sqlite3
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from ledger.client.consumer import Event, Inbox, Receiver, Taken, Verifier
from tests.crash.suite.children import Line
from tests.crash.suite.consumer_modes import REFUSALS
from tests.crash.suite.injection import Injector

BOOKS = "consumer.db"
MOST_CONSUMERS = 2
INBOXES = tuple(Inbox("qmark", table=f"inbox_{number}") for number in range(MOST_CONSUMERS))
SLOW_S = 0.1
HANGS_S = 0.5
ACK_WITHIN_S = 1.0
BOMB = gzip.compress(bytes(4_000_000))
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS request (place)",
    "CREATE INDEX IF NOT EXISTS request_place ON request (place)",
    "CREATE TABLE IF NOT EXISTS heard (place, webhook_id, delivery_id, digest, taken)",
    "CREATE INDEX IF NOT EXISTS heard_place ON heard (place)",
    "CREATE TABLE IF NOT EXISTS applied (place, operation_id, settlement)",
    "CREATE INDEX IF NOT EXISTS applied_place ON applied (place)",
    "CREATE TABLE IF NOT EXISTS acknowledged (place, delivery_id)",
    "CREATE TABLE IF NOT EXISTS wrong (place, words)",
    *(
        f"CREATE INDEX IF NOT EXISTS by_operation_{n} ON inbox_{n} (operation_id)"
        for n in range(MOST_CONSUMERS)
    ),
)


def opened(path: Path) -> sqlite3.Connection:
    """The books. Processes are killed here, not machines, so that nothing waits for the disk."""
    books = sqlite3.connect(path, isolation_level=None, timeout=10.0)
    books.execute("PRAGMA synchronous = OFF")
    return books


def make_books(path: Path) -> None:
    books = opened(path)
    books.execute("PRAGMA journal_mode = WAL")
    for statement in (*(line for inbox in INBOXES for line in inbox.schema), *SCHEMA):
        books.execute(statement)
    books.close()


@dataclass(frozen=True)
class Place:
    """One consumer of the schedule at hand: `answers` are its words; with `key` it acknowledges where
    that is `explicit`."""

    number: int
    secret: str
    ack: str
    key: str
    answers: tuple[str, ...]


@dataclass
class Orders:
    """What this process was last told."""

    books: Path
    ledger_url: str
    places: dict[str, Place] = field(default_factory=dict)
    patience: float = 1.0

    def obey(self, command: Mapping[str, Any]) -> None:
        self.places = {name: Place(**place) for name, place in command["consumers"].items()}
        self.patience = command["patience"]


def serve(line: Line, injector: Injector, listening: socket.socket, orders: Orders) -> None:
    """Serve, and take orders, until killed."""
    make_books(orders.books)
    _Handler.orders = orders
    server = _Server(listening)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 3600}, daemon=True).start()

    def answer(command: dict[str, Any]) -> None:
        injector.obey(command)
        orders.obey(command)

    line.answer_forever(answer)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listening: socket.socket) -> None:
        super().__init__(listening.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that was killed went away."""


class _Handler(BaseHTTPRequestHandler):
    """One sender's connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    orders: Orders

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silent."""

    def do_GET(self) -> None:
        self._note_wrong("a redirect was followed")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        if len(body) < length:  # its sender was killed in the middle of it
            self.close_connection = True
            return
        self.place = self.path.removeprefix("/")
        self.books = opened(self.orders.books)
        try:
            place = self.orders.places.get(self.place)
            if place is None:  # started a moment ago, and without orders
                self._answer(503)
            else:
                self._heard(place, body, self._next_word(place))
        finally:
            self.books.close()

    def _next_word(self, place: Place) -> str:
        with _transaction(self.books) as cursor:
            cursor.execute("INSERT INTO request VALUES (?)", (self.place,))
            (number,) = cursor.execute(
                "SELECT count(*) FROM request WHERE place = ?", (self.place,)
            ).fetchone()
        return place.answers[number - 1] if number <= len(place.answers) else "honest"

    def _heard(self, place: Place, body: bytes, word: str) -> None:
        if word in REFUSALS:
            status, headers = REFUSALS[word]
            return self._answer(status, headers)
        receiver = Receiver(
            Verifier(place.secret),
            transaction=partial(_transaction, self.books),
            inbox=INBOXES[place.number],
            work=partial(self._apply, word, place),
        )
        received = receiver.receive(self.headers, body)
        if received.event is None:
            self._note_wrong(f"{received.status} {received.reason}")
            return self._answer(received.status)
        self._note_heard(received.event, body, received.taken)
        self._react(word, place, received.event, duplicate=received.taken is Taken.DUPLICATE)
        return None

    def _apply(self, word: str, place: Place, cursor: Any, event: Event) -> None:
        row = (self.place, event.operation_id, event.settlement)
        cursor.execute("INSERT INTO applied VALUES (?, ?, ?)", row)
        if word == "dies_in_work":
            self._die(place)

    def _note_heard(self, event: Event, body: bytes, taken: Taken | None) -> None:
        digest = hashlib.sha256(body).hexdigest()
        row = (self.place, event.webhook_id, event.delivery_id, digest, taken.value if taken else "")
        self.books.execute("INSERT INTO heard VALUES (?, ?, ?, ?, ?)", row)

    def _note_wrong(self, words: str) -> None:
        books = opened(self.orders.books)
        books.execute("INSERT INTO wrong VALUES (?, ?)", (self.path.removeprefix("/"), words))
        books.close()

    # --- once it is applied -------------------------------------------------------------------------------

    def _react(self, word: str, place: Place, event: Event, *, duplicate: bool) -> None:
        if word == "dies_before_answer":
            self._die(place)
        elif word in {"lost", "reset", "hang"}:
            self._hang_up(word)
        elif word == "server_error":
            self._answer(500)
        else:
            self._receive(word)
            if place.ack == "explicit" and word != "no_ack":
                for _ in range(2 if word == "acks_twice" else 1):
                    self._acknowledge(place, event, duplicate=duplicate)
            if word == "dies":
                self._die(place)

    def _die(self, place: Place) -> None:
        """Unless new orders came meanwhile: in the quiet phase nobody would start it again."""
        if self.orders.places.get(self.place) is place:
            os.kill(os.getpid(), signal.SIGKILL)
        self.close_connection = True

    def _hang_up(self, word: str) -> None:
        if word == "hang":
            time.sleep(HANGS_S * self.orders.patience)
        if word == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def _receive(self, word: str) -> None:
        if word == "slow":
            time.sleep(SLOW_S * self.orders.patience)
        if word == "bomb":
            self._answer(200, {"Content-Encoding": "gzip"}, BOMB)
        elif word == "endless":
            self._answer_without_end()
        else:
            self._answer(200)

    def _answer(self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b"") -> None:
        lines = {"Content-Length": str(len(body)), **(headers or {})}
        head = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in lines.items()), "", ""]
        self.wfile.write("\r\n".join(head).encode() + body)

    def _answer_without_end(self) -> None:
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 200 X\r\n\r\n")
        try:
            while True:
                self.wfile.write(bytes(16_384))
        except OSError:
            return

    def _acknowledge(self, place: Place, event: Event, *, duplicate: bool) -> None:
        """Where it is not answered, or the ledger was struck, the message comes again."""
        said = {"webhook_id": event.webhook_id, "duplicate": duplicate}
        url = f"{self.orders.ledger_url}/api/v1/deliveries/{event.delivery_id}/ack"
        try:
            answer = _client().post(url, json=said, headers={"Authorization": f"Bearer {place.key}"})
        except httpx.HTTPError:
            return
        if answer.status_code == 200:
            self.books.execute("INSERT INTO acknowledged VALUES (?, ?)", (self.place, event.delivery_id))
        elif answer.status_code < 500 and answer.status_code != 429:
            self._note_wrong(f"an acknowledgement was answered {answer.status_code}: {answer.text[:200]}")


_clients: dict[int, httpx.Client] = {}


def _client() -> httpx.Client:
    """One of each process, which its threads share."""
    return _clients.setdefault(os.getpid(), httpx.Client(trust_env=False, timeout=ACK_WITHIN_S))


@contextmanager
def _transaction(books: sqlite3.Connection) -> Iterator[sqlite3.Cursor]:
    cursor = books.cursor()
    cursor.execute("BEGIN IMMEDIATE")
    try:
        yield cursor
    except BaseException:
        cursor.execute("ROLLBACK")
        raise
    cursor.execute("COMMIT")
