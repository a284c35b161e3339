"""A provider seen through a bad line: every answer may be replaced, altered, cut or dropped on its way.

    with Proxy(provider.url) as proxy:
        proxy.fault = dropped_after_sending
        ...
        assert proxy.requests[-1].method == "POST"

The provider behind it is real and counts its own effects; only what the asker sees is changed here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from tests.support.serving import InThread

LONGEST_WAIT_S = 30.0


@dataclass(frozen=True)
class Request:
    """What arrived; `number` counts from 0 since the fault was put in force."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    number: int


@dataclass(frozen=True)
class Reply:
    """What is said. `cut_after`: only so many bytes of the announced body, then the connection ends."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None


Honest = Callable[[], Reply]
Fault = Callable[[Request, Honest], Reply | None]
"""The reply to a request, or None to end the connection without one. Only `honest()` asks the provider."""


def honest(_: Request, ask: Honest) -> Reply | None:
    return ask()


def down(_: Request, __: Honest) -> None:
    """The request never arrives."""


def dropped_after_sending(_: Request, ask: Honest) -> None:
    """The provider did it, and nobody hears of it."""
    ask()


def answering(status: int, body: bytes = b'{"error": {}}', **headers: str) -> Fault:
    """Always this instead of an answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _request, _ask: Reply(status, body, named)


def truncated(_: Request, ask: Honest) -> Reply:
    reply = ask()
    return Reply(reply.status, reply.body, cut_after=len(reply.body) // 2)


def altered(change: Callable[[Request, Any], Any]) -> Fault:
    """The provider's answer, its document changed."""

    def fault(request: Request, ask: Honest) -> Reply:
        reply = ask()
        document = change(request, json.loads(reply.body))
        return replace(reply, body=json.dumps(document).encode())

    return fault


def only_from(number: int, fault: Fault) -> Fault:
    """Honest until so many requests were answered."""
    return lambda request, ask: (fault if request.number >= number else honest)(request, ask)


class Proxy(InThread):
    """Stands before a provider in a thread of this process. `fault` is in force until it is set again."""

    def __init__(self, upstream: str) -> None:
        self.requests: list[Request] = []
        self._fault: Fault = honest
        self._since = 0
        self._upstream = httpx.Client(base_url=upstream, trust_env=False, timeout=LONGEST_WAIT_S)
        server = _Server(("127.0.0.1", 0), _Handler)
        server.proxy = self
        super().__init__(server)

    @property
    def fault(self) -> Fault:
        return self._fault

    @fault.setter
    def fault(self, fault: Fault) -> None:
        self._fault, self._since = fault, len(self.requests)

    def __exit__(self, *how: object) -> None:
        super().__exit__(*how)
        self._upstream.close()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply | None:
        request = Request(method, target, headers, body, len(self.requests) - self._since)
        self.requests.append(request)
        return self._fault(request, lambda: self._ask(request))

    def _ask(self, request: Request) -> Reply:
        kept = {name: value for name, value in request.headers.items() if name in PASSED_ON}
        answer = self._upstream.request(request.method, request.target, headers=kept, content=request.body)
        link = answer.headers.get("link", "").replace(str(self._upstream.base_url).rstrip("/"), self.url)
        return Reply(answer.status_code, answer.content, {"Link": link} if link else {})


PASSED_ON = frozenset({"authorization", "content-type", "idempotency-key", "stripe-version", "accept"})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: Proxy


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.proxy.answer(self.command, self.path, headers, body)
        if reply is None or reply.cut_after is not None:
            self.close_connection = True
        if reply is not None:
            self._say(reply)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_GET  # noqa: N815

    def _say(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body[: reply.cut_after])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: `requests` is the log."""
