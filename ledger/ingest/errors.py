"""A problem as an exception, and as the answer it becomes."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja.responses import NinjaJSONEncoder

from ledger.ingest.problems import PROBLEMS, ProblemKind

PROBLEM_JSON = "application/problem+json"
REQUEST_ID = "X-Request-Id"
BUSY_RETRY_AFTER_S = 1


class Problem(Exception):
    """Answer with this kind of problem. `detail` says what was wrong with this very call.

    `facts` are further members of the body, such as where the attempt stands.
    """

    def __init__(
        self,
        slug: str,
        detail: str = "",
        *,
        operation_id: str | None = None,
        attempt_id: str | None = None,
        facts: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.kind: ProblemKind = PROBLEMS[slug]
        super().__init__(detail or self.kind.title)
        self.detail = detail or self.kind.explanation
        self.operation_id = operation_id
        self.attempt_id = attempt_id
        self.facts = dict(facts or {})
        self.headers = dict(headers or {})


def request_id_of(request: HttpRequest) -> str:
    """The id of this request: made here, never taken from outside."""
    known: str | None = getattr(request, "ledger_request_id", None)
    if known is None:
        known = f"req_{secrets.token_hex(12)}"
        request.ledger_request_id = known  # type: ignore[attr-defined]
    return known


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """The problem as application/problem+json (RFC 9457)."""
    kind, request_id = problem.kind, request_id_of(request)
    body = {
        **problem.facts,
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail,
        "operation_id": problem.operation_id,
        "attempt_id": problem.attempt_id,
        "retryable": kind.retryable,
        "safe_to_dispatch": False,
        "request_id": request_id,
    }
    headers = {REQUEST_ID: request_id, "Cache-Control": "no-store", **problem.headers}
    if kind.status == 503:
        headers.setdefault("Retry-After", str(BUSY_RETRY_AFTER_S))
    content = json.dumps(body, cls=NinjaJSONEncoder).encode()
    headers["Content-Length"] = str(len(content))
    return HttpResponse(content, status=kind.status, content_type=PROBLEM_JSON, headers=headers)
