"""A ledger of canned answers, speaking real HTTP on loopback, that keeps what it was asked."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ledger.rules.canonical import canonical_bytes, content_hash

ARGS = {"amount": 500, "to": "Ann"}
HASH = content_hash(canonical_bytes(ARGS))
OTHER_ARGS = {"amount": 400, "to": "Ann"}
OTHER_HASH = content_hash(canonical_bytes(OTHER_ARGS))

ABOUT: dict[str, Any] = {
    "operation_id": "op_1",
    "attempt_id": "att_1",
    "attempt": 1,
    "args_hash": HASH,
    "outcome": "open",
}


@dataclass(frozen=True)
class Canned:
    """One answer. A `status` of 0 hangs up instead; `raw` is said in place of the JSON `body`; `first` is
    done before it is given."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    first: Callable[[], None] | None = None


def directive(name: str, status: int = 200, headers: dict[str, str] | None = None, **more: Any) -> Canned:
    return Canned(status, {**ABOUT, "state": "INTENT_RECORDED", "directive": name, **more}, headers or {})


def leave(**changed: Any) -> Canned:
    body = {
        **ABOUT,
        "state": "DISPATCHED",
        "attempt_id": "att_2",
        "idempotency_key": "il-key",
        "correlation_id": "ilc-1",
        "args": ARGS,
        "lease_until": "2026-08-11T10:00:00Z",
        "lease_epoch": 3,
    } | changed
    return Canned(200, {name: value for name, value in body.items() if value != "left out"})


def lease_of(seconds: float) -> str:
    """A `lease_until` so far from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def problem(status: int, slug: str, headers: dict[str, str] | None = None, **more: Any) -> Canned:
    body = {"type": f"/problems/{slug}", "title": slug, "detail": f"the detail of {slug}", "status": status}
    return Canned(status, {**body, "safe_to_dispatch": False, **more}, headers or {})


def after(state: str, **more: Any) -> Canned:
    return Canned(200, {**ABOUT, "attempt_id": "att_2", "state": state, "directive": "reconcile", **more})


DEFAULTS = {
    "intents": directive("dispatch", 201),
    "dispatch": leave(),
    "outcome": after("OUTCOME_CONFIRMED", result_ref="re_1"),
    "provider-request": after("DISPATCHED"),
    "heartbeat": Canned(200, {"lease_until": "2026-08-11T10:01:00Z"}),
}
DROP = Canned(0)


class FakeLedger(ThreadingHTTPServer):
    """`on` queues answers to a call (its last path segment); when they are used up, the defaults follow."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.authorizations: set[str] = set()
        self.preferences: list[str] = []
        self._queued: dict[str, list[Canned]] = {}
        self._lock = threading.Condition()

    def on(self, call: str, *answers: Canned) -> None:
        self._queued.setdefault(call, []).extend(answers)

    def bodies(self, call: str) -> list[dict[str, Any]]:
        return [body for _, path, body in self.asked if path.rstrip("/").endswith(call)]

    def wait_for(self, call: str, times: int) -> None:
        """Until this call was made so often; a fault after ten seconds."""
        with self._lock:
            assert self._lock.wait_for(lambda: len(self.bodies(call)) >= times, 10), call

    def paths(self) -> list[str]:
        return [path.removeprefix("/api/v1") for _, path, _ in self.asked]

    def answer(self, method: str, path: str, body: dict[str, Any]) -> Canned:
        call = path.partition("?")[0].rpartition("/")[2]
        with self._lock:
            self.asked.append((method, path, body))
            self._lock.notify_all()
            queued = self._queued.get(call)
            return queued.pop(0) if queued else DEFAULTS.get(call, Canned(200, {"called": call}))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeLedger

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.authorizations.add(self.headers.get("Authorization", ""))
        self.server.preferences += self.headers.get_all("Prefer") or []
        canned = self.server.answer(self.command, self.path, json.loads(raw or b"{}"))
        if canned.first is not None:
            canned.first()
        if canned.status == 0:
            self.close_connection = True
            return
        said = json.dumps(canned.body).encode() if canned.raw is None else canned.raw
        self.send_response(canned.status)
        kind = "application/problem+json" if canned.status >= 400 else "application/json"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(said)), **canned.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_PUT = _answer  # noqa: N815  (the base class's names)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silent."""
