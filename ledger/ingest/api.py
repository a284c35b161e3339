"""The API as one object: its calls, and how each error becomes a problem."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from ledger.ingest import views_attempts, views_deliveries, views_intents, views_operations, views_runs
from ledger.ingest.errors import Problem, problem_response
from ledger.ingest.fields import sentence_of
from ledger.ingest.openapi import made_true
from ledger.lifecycle import UnknownObject
from ledger.transactions import Busy

_log = logging.getLogger(__name__)
_MOST_NAMED = 5
_LONGEST_NAME = 60


class LedgerApi(NinjaAPI):
    """Ninja's API with an OpenAPI document that says what really is answered. It is made once per process."""

    _document: dict[str, Any] | None = None

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> Any:
        if self._document is None:
            self._document = made_true(
                super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
            )
        return self._document


api = LedgerApi(
    title="Interruption ledger",
    version="1",
    description=(
        "Every side effect is written down before it is sent. Post an intent, obey its directive, send only "
        "with leave, report the outcome. No answer but a 200 to `dispatch` means that something may be sent."
    ),
    docs_url=None,
    urls_namespace="ledger-api",
)
for _views in (views_intents, views_attempts, views_operations, views_runs, views_deliveries):
    api.add_router("", _views.router)


@api.exception_handler(Problem)
def _problem(request: HttpRequest, problem: Problem) -> HttpResponse:
    return problem_response(request, problem)


@api.exception_handler(UnknownObject)
def _unknown(request: HttpRequest, _error: UnknownObject) -> HttpResponse:
    return problem_response(request, Problem("not-found"))


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, _error: Http404) -> HttpResponse:
    return problem_response(request, Problem("not-found"))


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    return problem_response(request, Problem("invalid-request", detail_of(error)))


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return problem_response(request, Problem("bad-request", str(error)))


@api.exception_handler(Busy)
def _busy(request: HttpRequest, _error: Busy) -> HttpResponse:
    return problem_response(request, Problem("unavailable"))


@api.exception_handler(OperationalError)
@api.exception_handler(InterfaceError)
def _no_database(request: HttpRequest, error: Exception) -> HttpResponse:
    _log.warning("the database did not answer", exc_info=error)
    return problem_response(request, Problem("unavailable"))


@api.exception_handler(Exception)
def _own_fault(request: HttpRequest, error: Exception) -> HttpResponse:
    if settings.DEBUG_PROPAGATE_EXCEPTIONS:
        raise error
    _log.error("a call failed", exc_info=error)
    return problem_response(request, Problem("internal-error"))


def detail_of(error: ValidationError) -> str:
    """Each wrong field as a JSON pointer, with what is wrong with it. Values are never repeated."""
    said = [_said(wrong) for wrong in error.errors[:_MOST_NAMED]]
    more = len(error.errors) - len(said)
    return "; ".join(said) + (f"; and {more} more" if more > 0 else "") + "."


def _said(wrong: dict[str, Any]) -> str:
    source, _argument, *path = (*wrong["loc"], "", "")[: max(2, len(wrong["loc"]))]
    pointer = "".join(f"/{_shown(part)}" for part in path) or f"the {source}"
    if wrong["type"] == "extra_forbidden":
        return f"{pointer}: there is no such field"
    if wrong["type"] == "missing":
        return f"{pointer}: is required"
    return f"{pointer}: {sentence_of(str(wrong['msg']))}"


def _shown(part: object) -> str:
    text = str(part).replace("~", "~0").replace("/", "~1")
    return text[:_LONGEST_NAME].encode("ascii", "backslashreplace").decode()
