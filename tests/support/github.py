"""A program that answers about issues in GitHub's shape: pages by Link header, no metadata, no keys."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.serving import InThread

TOKEN = "github-secret"
CANARY = 1


class Tracker(InThread):
    """One repository's issues, served in a thread of this process."""

    def __init__(self) -> None:
        self.issues = [_issue(CANARY, "The first issue", None)]
        server = _Server(("127.0.0.1", 0), _Handler)
        server.tracker = self
        super().__init__(server)

    def open_issue(self, title: str, body: str) -> int:
        number = len(self.issues) + 1
        self.issues.append(_issue(number, title, body))
        return number

    def answer(self, target: str) -> tuple[int, Any, str]:
        """Status, document and Link header."""
        parts = urlsplit(target)
        match parts.path.strip("/").split("/"):
            case ["repos", "acme", "tracker", "issues"]:
                return 200, *self._page(parts.path, {k: v[0] for k, v in parse_qs(parts.query).items()})
            case ["repos", "acme", "tracker", "issues", number] if number == str(CANARY):
                return 200, self.issues[0], ""
        return 404, {"message": "Not Found", "status": "404"}, ""

    def _page(self, path: str, query: dict[str, str]) -> tuple[list[Any], str]:
        assert query["since"].endswith("Z"), "GitHub wants YYYY-MM-DDTHH:MM:SSZ"
        page, size = int(query.get("page", 1)), int(query["per_page"])
        following = f"{self.url}{path}?{urlencode({**query, 'page': page + 1})}"
        first = f"{self.url}{path}?{urlencode({**query, 'page': 1})}"
        links = [f'<{following}>; rel="next"'] if page * size < len(self.issues) else []
        links += [f'<{first}>; rel="first"'] if page > 1 else []
        return self.issues[(page - 1) * size : page * size], ", ".join(links)


def _issue(number: int, title: str, body: str | None) -> dict[str, Any]:
    return {
        "id": number,
        "node_id": f"I_{number}",
        "number": number,
        "state": "open",
        "title": title,
        "body": body,
        "user": {"login": "octobot", "id": 7, "type": "Bot"},
        "labels": [],
        "assignees": [],
        "comments": 0,
        "created_at": "2026-08-11T12:00:00Z",
        "updated_at": "2026-08-11T12:00:00Z",
        "closed_at": None,
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    tracker: Tracker


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        may = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        unnamed = {"message": "Bad credentials", "status": "401"}
        status, document, link = self.server.tracker.answer(self.path) if may else (401, unnamed, "")
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        if link:
            self.send_header("Link", link)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""
