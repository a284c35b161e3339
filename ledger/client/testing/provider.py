"""`python -m ledger.client.testing.provider BOOKS PORT [honours_keys]`: the counting provider's process.

It prints its port and serves until it is killed, or until whoever started it is gone.
"""

import json
import os
import sys
import threading
import urllib.parse
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ledger.client.testing.books import Effect, correlation_in, read_effects, write_effect

LOOKS_EVERY_S = 1.0


class Provider(ThreadingHTTPServer):
    """Its books, and whether answers wait."""

    daemon_threads = True

    def __init__(self, books: Path, port: int, *, honours_keys: bool) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self._books = books
        self._honours_keys = honours_keys
        self._changed = threading.Condition()
        self._holding = False
        self.held = 0

    def happen(self, path: str, key: str, body: dict[str, Any]) -> Effect:
        """One effect, or the earlier one of a key that is honoured."""
        with self._changed:
            effects = read_effects(self._books)
            earlier = [effect for effect in effects if key and effect.idempotency_key == key]
            if earlier and self._honours_keys:
                return earlier[0]
            effect = Effect(f"eff_{len(effects) + 1}", path, key, correlation_in(body), body)
            write_effect(self._books, effect)
            return effect

    def wait_while_held(self) -> None:
        with self._changed:
            self.held += self._holding
            self._changed.wait_for(lambda: not self._holding)

    def hold(self, *, holding: bool) -> None:
        with self._changed:
            self._holding, self.held = holding, 0
            self._changed.notify_all()

    def listed(self, correlation_id: str | None) -> list[dict[str, Any]]:
        effects = read_effects(self._books)
        return [asdict(effect) for effect in effects if correlation_id in {None, effect.correlation_id}]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An agent that was killed hangs up: that is what this is for."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Provider

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path in {"/_hold", "/_release"}:
            self.server.hold(holding=self.path == "/_hold")
            return self._answer(200, {})
        effect = self.server.happen(self.path, self.headers.get("Idempotency-Key", ""), _object_in(raw))
        self.server.wait_while_held()
        return self._answer(201, asdict(effect))

    def do_GET(self) -> None:
        asked = urllib.parse.urlsplit(self.path)
        if asked.path == "/_held":
            return self._answer(200, {"held": self.server.held})
        if asked.path != "/effects":
            return self._answer(404, {})
        wanted = urllib.parse.parse_qs(asked.query).get("correlation_id", [None])[0]
        return self._answer(200, {"data": self.server.listed(wanted)})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        said = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class's name)
        """Silent."""


def _object_in(raw: bytes) -> dict[str, Any]:
    """The body as an object; anything else is kept as `raw`."""
    try:
        body = json.loads(raw or b"{}")
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {"raw": raw.decode(errors="replace")}


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        threading.Event().wait(LOOKS_EVERY_S)
    os._exit(0)


def main() -> None:
    books, port, *rest = sys.argv[1:]
    parent = os.getppid()
    server = Provider(Path(books), int(port), honours_keys="honours_keys" in rest)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
