"""A consumer in a process of its own, with its own disk: it says what it was sent, and answers as told.

Run as a program: `python -m tests.support.consumer DIR`; it prints its port and serves until it is killed.
What it received survives it in DIR/received.jsonl; how it answers is read anew from DIR/mode.json.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from tests.support.serving import kill_program, start_program


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def webhook_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.body)
        return document


class ConsumerProcess:
    """Starts the consumer; `kill` and `start` again as often as a test likes, on the same port and disk."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = 0
        self._process: subprocess.Popen[str] | None = None
        self.answer(200)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks"

    def start(self) -> None:
        place = (str(self.directory), str(self.port))
        self._process, said = start_program("tests.support.consumer", *place)
        self.port = int(said)

    def kill(self) -> None:
        if self._process is not None:
            kill_program(self._process)
            self._process = None

    def answer(
        self, status: int, *, headers: Mapping[str, str] | None = None, how: str = "", **also: Any
    ) -> None:
        """How the next requests are answered. `how`: "", "reset" (after reading), "hang", "endless", "bomb"
        (gzip), "die" (keeps what it received, then kills itself); `wait_s` before the answer."""
        mode = {"status": status, "headers": dict(headers or {}), "how": how, **also}
        draft = self.directory / "mode.draft"
        draft.write_text(json.dumps(mode))
        draft.replace(self.directory / "mode.json")

    def forget(self) -> None:
        """Forget what arrived so far."""
        (self.directory / "received.jsonl").unlink(missing_ok=True)

    def received(self) -> list[Received]:
        """Everything that ever arrived, oldest first."""
        path = self.directory / "received.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        rows = map(json.loads, lines)
        return [Received(row["headers"], bytes.fromhex(row["body"]), row["at"]) for row in rows]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    directory: Path

    def log_message(self, *_: object) -> None:
        """Nothing: stdout carries the port alone."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        mode = json.loads((self.directory / "mode.json").read_text())
        self._keep(body)
        time.sleep(mode.get("wait_s", 0))
        getattr(self, f"_how_{mode['how']}", self._how_)(mode)

    def do_GET(self) -> None:
        """A followed redirect would come here."""
        self.do_POST()

    def _keep(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        line = json.dumps({"headers": headers, "body": body.hex(), "at": time.time(), "verb": self.command})
        with (self.directory / "received.jsonl").open("a") as file:
            file.write(line + "\n")

    def _how_(self, mode: dict[str, Any]) -> None:
        answer = str(mode.get("body", "")).encode()
        self.send_response(mode["status"])
        for name, value in mode["headers"].items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _how_die(self, _mode: dict[str, Any]) -> None:
        os.kill(os.getpid(), 9)

    def _how_reset(self, _mode: dict[str, Any]) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def _how_hang(self, _mode: dict[str, Any]) -> None:
        time.sleep(3600)

    def _how_bomb(self, mode: dict[str, Any]) -> None:
        """1 kB on the wire for each MB that whoever unpacks it would hold."""
        packed = gzip.compress(bytes(50_000_000))
        self.send_response(mode["status"])
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed)

    def _how_endless(self, mode: dict[str, Any]) -> None:
        self.send_response(mode["status"])
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                self.wfile.write(b"x" * 65_536)
        except OSError:
            return


def main() -> None:
    directory, port = Path(sys.argv[1]), int(sys.argv[2])
    _Handler.directory = directory
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
