"""Speak to the API of a real web server: politely through httpx, or byte by byte."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier
from types import TracebackType
from typing import Any, Self

import httpx

from tests.support.processes import free_port, wait_until

ROOT = Path(__file__).parents[2]
PREFIX = "/api/v1"
READY_WITHIN_S = 120.0


@dataclass
class RawAnswer:
    """What came back on a bare socket; status 0 where the server closed it without a word."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> Any:
        return json.loads(self.body)


class WebServer:
    """The product's own web server as a process, on a database that exists."""

    def __init__(self, *, database_url: str, log: Path, threads: int = 4) -> None:
        self.port = free_port()
        self._threads = str(threads)
        self._environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "LEDGER_ROLE": "web",
            "LEDGER_WEB_THREADS": self._threads,
        }
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        command = [
            sys.executable, "-m", "granian", "--interface", "wsgi",
            "--host", "127.0.0.1", "--port", str(self.port),
            "--workers", "1", "--blocking-threads", self._threads, "--http", "1", "--no-ws",
            "config.wsgi:application",
        ]  # fmt: skip
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=log, stderr=log)
        try:
            wait_until(self._is_up, within_s=READY_WITHIN_S, what="the web server")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.said()
        try:
            return httpx.get(f"{self.address}/healthz", trust_env=False, timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def send_raw(self, request: bytes, *, then_close: bool = False, timeout: float = 5.0) -> RawAnswer:
        """Send these bytes and nothing else; `then_close`: say that no more will come."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as wire:
            wire.sendall(request)
            if then_close:
                wire.shutdown(socket.SHUT_WR)
            return _read_answer(wire)


class Api:
    """One key's view of the API. Every answer is httpx's own; `look_at` is shown each of them."""

    def __init__(
        self, address: str, key: str = "", *, look_at: Callable[[httpx.Response], None] | None = None
    ) -> None:
        self._address, self._look_at = address, look_at
        self.http = httpx.Client(
            base_url=address + PREFIX,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            event_hooks={"response": [look_at] if look_at else []},
            trust_env=False,
            timeout=20,
        )

    def get(self, path: str, **query: str | int) -> httpx.Response:
        return self.http.get(path, params=query)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def put(self, path: str, **body: Any) -> httpx.Response:
        return self.http.put(path, json=body)

    def post_bytes(self, path: str, content: bytes, **headers: str) -> httpx.Response:
        """These bytes as the body; headers written with _ for -."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, content=content, headers={"Content-Type": "application/json", **named})

    def close(self) -> None:
        self.http.close()

    @contextmanager
    def as_key(self, key: str) -> Iterator[Api]:
        """The same API as another key sees it; "" for none."""
        other = Api(self._address, key, look_at=self._look_at)
        try:
            yield other
        finally:
            other.close()


def at_once(calls: Sequence[Callable[[], httpx.Response]]) -> list[httpx.Response]:
    """Make all these calls at the same moment."""
    ready = Barrier(len(calls))

    def make(call: Callable[[], httpx.Response]) -> httpx.Response:
        ready.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(make, calls))


def slug_of(answer: httpx.Response | RawAnswer) -> str:
    """Which problem this is. Fails where it is none, or not one of the ledger's."""
    body = answer.json()
    assert answer.headers["content-type"] == "application/problem+json", answer
    assert body["safe_to_dispatch"] is False
    status = answer.status if isinstance(answer, RawAnswer) else answer.status_code
    assert body["status"] == status
    assert body["request_id"] == answer.headers["x-request-id"]
    return str(body["type"]).removeprefix("/problems/")


def _read_answer(wire: socket.socket) -> RawAnswer:
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = _receive(wire)
        if not chunk:
            return RawAnswer(0)
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    wanted = int(headers.get("content-length", "0"))
    while len(body) < wanted and (chunk := _receive(wire)):
        body += chunk
    return RawAnswer(int(status_line.split()[1]), headers, body[:wanted])


def _receive(wire: socket.socket) -> bytes:
    try:
        return wire.recv(65_536)
    except ConnectionResetError:
        return b""
