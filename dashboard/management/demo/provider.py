"""The demo's provider: a small payment, mail, ticket and deployment service in a process of its own.

    python -m dashboard.management.demo.provider --dir DIR [--port 0] [--token TOKEN] [--idempotent refunds,…]

Its first line on standard output is JSON: `{"port": 8123, "url": "http://127.0.0.1:8123"}`. It needs
nothing but the standard library, knows nothing of the ledger, and counts its effects on its own disk.

The resources are refunds, messages, tickets and deployments.

- `POST /<resource>` with `Idempotency-Key`: 201 new, 200 the same thing again, 409 the key had another body.
- `GET /<resource>?correlation_id=&page=&limit=`: `{"data": [...], "next": "/refunds?…&page=2" or null}`.
- `GET /<resource>/<id>`: the thing, or 404; the id `canary` always exists.
- `PATCH /<resource>/<id>` with `{"status": …}`: the thing, moved on.
- `GET /effects`: `{"total": n, "by_resource": {…}, "by_correlation_id": {…}}`.
"""

import argparse
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from dashboard.management.demo.books import PREFIXES, Books, KeyReuseError

MAX_BODY = 1_048_576
PAGE_SIZE = 10


class Answer:
    """What is about to be said: a status, a JSON document, and further headers."""

    def __init__(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.document = document
        self.headers = headers or {}


def problem(status: int, words: str) -> Answer:
    return Answer(status, {"error": words})


class Provider(ThreadingHTTPServer):
    """The listening server; `books` holds what it did."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, books: Books, *, port: int, token: str, handler: type["Handler"]) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.books = books
        self.token = token

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that went away is what this provider is here to see: no traceback."""


class Handler(BaseHTTPRequestHandler):
    """One caller's connection. `answer_to` is what a simulator of faults overrides."""

    protocol_version = "HTTP/1.1"
    server: Provider

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PATCH(self) -> None:
        self._handle()

    def do_PUT(self) -> None:
        self._handle()

    def _handle(self) -> None:
        split = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        try:
            answer = self.answer_to(split.path.strip("/").split("/"), query, self._body())
        except ValueError:
            answer = problem(400, "the body is not a JSON object, or a number is not one")
        if answer is not None:
            self.say(answer)

    def _body(self) -> dict[str, Any]:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 <= length <= MAX_BODY:
            raise ValueError
        raw = self.rfile.read(length)
        body = json.loads(raw) if raw else {}
        if not isinstance(body, dict):
            raise ValueError  # noqa: TRY004  (one kind of error: the body is unusable)
        return body

    def answer_to(self, path: list[str], query: dict[str, str], body: dict[str, Any]) -> Answer | None:
        """The honest answer; None where nothing is to be said any more."""
        if path == ["effects"]:
            return Answer(200, self.server.books.effects())
        if self.server.token and self.headers.get("Authorization") != f"Bearer {self.server.token}":
            return problem(401, "the token is missing or wrong")
        if path[0] not in PREFIXES:
            return problem(404, "there is no such resource")
        if len(path) == 1:
            return self._create(path[0], body) if self.command == "POST" else self._list(path[0], query)
        return self._one(path[0], path[1], body)

    def _create(self, resource: str, body: dict[str, Any]) -> Answer:
        key = self.headers.get("Idempotency-Key", "")
        try:
            thing, new = self.server.books.create(resource, body, key=key)
        except KeyReuseError:
            return problem(409, "this Idempotency-Key was used with another body")
        return Answer(201 if new else 200, thing)

    def _list(self, resource: str, query: dict[str, str]) -> Answer:
        wanted = query.get("correlation_id")
        page, limit = int(query.get("page", "1")), int(query.get("limit", str(PAGE_SIZE)))
        things = self.server.books.matching(resource, wanted)
        first = (page - 1) * limit
        more = len(things) > first + limit
        filter_ = f"correlation_id={quote(wanted, safe='')}&" if wanted is not None else ""
        following = f"/{resource}?{filter_}limit={limit}&page={page + 1}" if more else None
        return Answer(200, {"data": things[first : first + limit], "next": following})

    def _one(self, resource: str, thing_id: str, body: dict[str, Any]) -> Answer:
        books = self.server.books
        if self.command == "PATCH":
            thing = books.change_status(resource, thing_id, str(body.get("status", "")))
        else:
            thing = books.one(resource, thing_id)
        return Answer(200, thing) if thing else problem(404, "there is no such thing")

    def say(self, answer: Answer, *, cut_after: int | None = None) -> None:
        """Send the answer; with `cut_after`, only so many bytes of its body, then hang up."""
        raw = json.dumps(answer.document).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw[:cut_after])
        self.close_connection = self.close_connection or cut_after is not None

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class's name)
        """Silent: its books are its log."""


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dir", type=Path, required=True, help="where its effects are kept")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--token", default="", help="ask for this bearer token")
    parser.add_argument("--idempotent", default="refunds,deployments", help="resources that honour keys")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when the starter is gone")
    return parser


def serve(options: argparse.Namespace, *, handler: type[Handler] = Handler) -> None:
    """Serve until the process is ended; the first line printed says where."""
    books = Books(options.dir, idempotent=frozenset(options.idempotent.split(",")))
    provider = Provider(books, port=options.port, token=options.token, handler=handler)
    port = provider.server_address[1]
    sys.stdout.write(json.dumps({"port": port, "url": f"http://127.0.0.1:{port}"}) + "\n")
    sys.stdout.flush()
    if options.until_stdin_closes:
        threading.Thread(target=provider.serve_forever, daemon=True).start()
        sys.stdin.read()
    else:
        provider.serve_forever()


def main(argv: list[str] | None = None) -> None:
    try:
        serve(arguments().parse_args(argv))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
