"""Pages for what went wrong: what failed, whether anything changed, and the request id where it is known."""

from __future__ import annotations

import structlog
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from ledger.ingest.errors import REQUEST_ID, request_id_of

log = structlog.get_logger(__name__)

RETRY_AFTER_S = 2


def _problem(request: HttpRequest, template: str, status: int) -> HttpResponse:
    request_id = request_id_of(request)
    log.warning("page_refused", request_id=request_id, status=status, path=request.path)
    response = render(request, template, {"request_id": request_id}, status=status)
    response.headers["Cache-Control"] = "no-store, private"
    response.headers[REQUEST_ID] = request_id
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    return _problem(request, "400.html", 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    return _problem(request, "403.html", 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    return _problem(request, "404.html", 404)


def failed(request: HttpRequest) -> HttpResponse:
    return _problem(request, "500.html", 500)


def busy(request: HttpRequest) -> HttpResponse:
    """The rows needed stayed locked by others; nothing was written."""
    response = _problem(request, "503.html", 503)
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    return _problem(request, "403_csrf.html", 403)
