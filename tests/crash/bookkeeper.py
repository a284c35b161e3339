"""A consumer that keeps books, with the consumer kit: `python -m …bookkeeper DIR PORT SECRET WORK_S`.

It prints its port. What it applied stands in its own SQLite file, what came in DIR/received; both survive it.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from tests.ledger.client.conformance import consumer
from tests.support.serving import end_with_its_starter, kill_program, start_program


class Bookkeeper:
    """One consumer process; `kill` and `start` again as often as one likes, on the same port and disk."""

    def __init__(self, directory: Path, *, work_s: float = 0.0) -> None:
        directory.mkdir()
        self.directory, self.work_s = directory, work_s
        self.port, self.secret = 0, ""
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks"

    def start(self, secret: str = "") -> None:
        """Without a secret known yet it refuses whatever comes, and has its port."""
        self.secret = secret or self.secret
        told = (str(self.directory), str(self.port), self.secret or NO_SECRET, str(self.work_s))
        self._process, said = start_program("tests.crash.bookkeeper", *told)
        self.port = int(said)

    def kill(self) -> None:
        if self._process is not None:
            kill_program(self._process)
            self._process = None

    def applied(self) -> Counter[str]:
        """How often each webhook id was applied."""
        with closing(sqlite3.connect(self.directory / "books.sqlite", timeout=60)) as opened:
            return Counter(webhook_id for (webhook_id,) in opened.execute("SELECT webhook_id FROM entries"))

    def came_again(self) -> int:
        """How many messages came that had come before."""
        lines = (self.directory / "received").read_text().splitlines()
        return len(lines) - len({line.split()[0] for line in lines})


NO_SECRET = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


class Books(consumer.Consumer):
    """Takes its time before it begins, so that no lock of its own is held meanwhile; then enters at once."""

    work_s = 0.0

    def handle(self, headers: Mapping[str, str], body: bytes) -> int:
        time.sleep(self.work_s)
        return super().handle(headers, body)

    def take_time(self) -> None:
        """It was taken before."""


class Handler(consumer.Handler):
    protocol_version = "HTTP/1.1"


class Server(consumer.Server):
    def handle_error(self, *_: object) -> None:
        """Whoever asked was killed; it asks again."""


def main() -> None:
    directory, port, secret, work_s = sys.argv[1:]
    end_with_its_starter()
    books = Books(Path(directory), secret)
    books.work_s = float(work_s)
    Handler.consumer = books
    server = Server(("127.0.0.1", int(port)), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
