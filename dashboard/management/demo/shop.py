"""The demo's consumer: the shop's order book, told of every result at Fernhill.

    python -m dashboard.management.demo.shop --dir DIR [--port 0]

Its first line on standard output is JSON: `{"port": 8123, "url": "http://127.0.0.1:8123/results"}`. Each line
on standard input is a secret it verifies with from then on; it ends when that closes. It applies each result
once, in its own SQLite file, and takes none about orders that are being counted: those it answers 503.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ledger.client.consumer import Event, Inbox, Receiver, Verifier
from ledger.client.consumer.inbox import Cursor

MOST_BYTES = 65_536
COUNTED_EVERY = 5
"""Of so many orders one is just being counted."""


class BeingCounted(Exception):
    """Nothing is written about this order today."""


class OrderBook:
    """What was applied, on the shop's own disk."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = directory / "orders.sqlite"
        self._inbox = Inbox("qmark")
        self.receiver: Receiver | None = None
        with self._transaction() as cursor:
            self._inbox.create(cursor)
            cursor.execute("CREATE TABLE IF NOT EXISTS results (operation_key TEXT, outcome TEXT)", ())

    def use(self, secret: str) -> None:
        self.receiver = Receiver(
            Verifier(secret), transaction=self._transaction, inbox=self._inbox, work=self._apply
        )

    @contextmanager
    def _transaction(self) -> Iterator[Cursor]:
        with closing(sqlite3.connect(self._path, timeout=30)) as opened, opened:
            yield opened.cursor()

    def _apply(self, cursor: Cursor, event: Event) -> None:
        if is_being_counted(event.operation_key):
            raise BeingCounted(event.operation_key)
        cursor.execute("INSERT INTO results VALUES (?, ?)", (event.operation_key, event.outcome))


def is_being_counted(operation_key: str) -> bool:
    """Whether the order is one that nothing is written about, by the number at its end."""
    digits = operation_key.rpartition("-")[2]
    return digits.isdecimal() and int(digits) % COUNTED_EVERY == 0


class Handler(BaseHTTPRequestHandler):
    """503 where the work did not succeed, as a shop does whose database is closed."""

    protocol_version = "HTTP/1.1"
    book: OrderBook

    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), MOST_BYTES))
        receiver = self.book.receiver
        if receiver is None:
            self._say(503, "not open yet")
        else:
            answer = receiver.receive(self.headers, body)
            self._say(503 if answer.status == 500 else answer.status, answer.reason)

    def _say(self, status: int, reason: str) -> None:
        text = f"{reason}\n".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Silent: its books are its log."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dir", type=Path, required=True, help="where its books are kept")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    options = parser.parse_args()
    Handler.book = OrderBook(options.dir)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    port = server.server_address[1]
    sys.stdout.write(json.dumps({"port": port, "url": f"http://127.0.0.1:{port}/results"}) + "\n")
    sys.stdout.flush()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for line in sys.stdin:
        Handler.book.use(json.loads(line)["secret"])


if __name__ == "__main__":
    main()
