"""What every request under `/api/` passes first, and what every answer to it has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import parse_qsl

import structlog
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from ledger.ingest.errors import PROBLEM_JSON, REQUEST_ID, Problem, problem_response, request_id_of

PREFIX = "/api/"
MOST_ADDRESS_BYTES = 8_192
MOST_PARAMETERS = 50
METHODS = ("GET", "POST", "PUT")

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_HEADER = re.compile("[\x00-\x08\x0a-\x1f\x7f]")  # beyond ASCII the bytes are not decoded yet
_BY_STATUS = {
    400: "bad-request",
    403: "bad-request",
    404: "not-found",
    405: "method-not-allowed",
    413: "body-too-large",
    500: "internal-error",
    503: "unavailable",
}

GetResponse = Callable[[HttpRequest], HttpResponseBase]


def problems_for_the_api(get_response: GetResponse) -> GetResponse:
    """Middleware, to stand first: no call of the API gets a page for an answer, each gets a request id."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(PREFIX):
            return get_response(request)
        with structlog.contextvars.bound_contextvars(request_id=request_id_of(request)):
            return _answered(request, get_response)

    return middleware


def _answered(request: HttpRequest, get_response: GetResponse) -> HttpResponseBase:
    try:
        check_address(request)
    except Problem as problem:
        return problem_response(request, problem)
    response = get_response(request)
    if response.status_code >= 400 and response.headers.get("Content-Type") != PROBLEM_JSON:
        return _as_problem(request, response)
    response.headers[REQUEST_ID] = request_id_of(request)
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def _as_problem(request: HttpRequest, response: HttpResponseBase) -> HttpResponse:
    """A page that Django answered with, as the problem of its status."""
    slug = _BY_STATUS.get(response.status_code, "bad-request")
    headers = {name: response.headers[name] for name in ("Allow",) if name in response.headers}
    return problem_response(request, Problem(slug, headers=headers))


def check_address(request: HttpRequest) -> None:
    """Raise a `Problem` unless method, path, query and headers are ones this API can mean."""
    if request.method not in METHODS:
        raise Problem("method-not-allowed", headers={"Allow": ", ".join(METHODS)})
    query = str(request.META.get("QUERY_STRING", ""))
    if len(request.path_info) + len(query) > MOST_ADDRESS_BYTES:
        raise Problem("address-too-long")
    if _CONTROL.search(request.path_info):
        raise Problem("bad-request", "The path holds control characters.")
    _check_query(query)
    _check_headers(request)


def _check_query(query: str) -> None:
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, errors="strict", encoding="utf-8", max_num_fields=MOST_PARAMETERS
        )
    except ValueError:
        raise Problem(
            "bad-request", "The query is not percent-encoded UTF-8, or has too many parts."
        ) from None
    if any(_CONTROL.search(name) or _CONTROL.search(value) for name, value in pairs):
        raise Problem("bad-request", "The query holds control characters.")
    name, times = next(iter(Counter(name for name, _ in pairs).most_common(1)), ("", 0))
    if times > 1:
        raise Problem("bad-request", f"The query has {name[:40]!a} more than once.")


def _check_headers(request: HttpRequest) -> None:
    for name, value in request.headers.items():
        if _CONTROL_IN_HEADER.search(value):
            raise Problem("bad-request", f"The header {name[:40]!a} holds control characters.")
