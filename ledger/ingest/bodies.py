"""Bodies and queries, read strictly before a schema sees them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, UnreadablePostError
from ninja import NinjaAPI
from ninja.params.models import Body, BodyModel, Query, QueryModel

from ledger.ingest.errors import Problem
from ledger.rules.canonical import MOST_BYTES, JsonTooLarge, MalformedJson, read_json

_MOST_LENGTH_DIGITS = 18


class _StrictBodyModel(BodyModel):
    __read_from_single_attr__: str

    @classmethod
    def get_request_data(
        cls,
        request: HttpRequest,
        api: NinjaAPI,  # noqa: ARG003
        path_params: dict[str, Any],  # noqa: ARG003
    ) -> dict[str, Any]:
        return {cls.__read_from_single_attr__: read_body(request)}


class StrictBody(Body):  # type: ignore[misc]
    """Annotates the one argument of a view that its JSON body is read into."""

    _model = _StrictBodyModel

    def __init__(self) -> None:
        super().__init__(...)

    @classmethod
    def _param_source(cls) -> str:
        return "body"


class _StrictQueryModel(QueryModel):
    __ninja_flatten_map__: dict[str, Any]

    @classmethod
    def get_request_data(
        cls, request: HttpRequest, api: NinjaAPI, path_params: dict[str, Any]
    ) -> dict[str, Any] | None:
        unknown = sorted(set(request.GET) - set(cls.__ninja_flatten_map__))
        if unknown:
            raise Problem("invalid-request", f"The query has no parameter {unknown[0][:40]!a}.")
        return super().get_request_data(request, api, path_params)


class StrictQuery(Query):  # type: ignore[misc]
    """Annotates the one argument that the query is read into: a mistyped filter must not mean "all"."""

    _model = _StrictQueryModel  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__(...)

    @classmethod
    def _param_source(cls) -> str:
        return "query"


def read_body(request: HttpRequest) -> dict[str, Any]:
    """The JSON object in the body. Raises a `Problem` about what is wrong with it or its envelope."""
    _check_media_type(request)
    length = _declared_length(request)
    try:
        raw = request.body
    except (UnreadablePostError, OSError):
        raise Problem("malformed-json", "The body ended before its Content-Length.") from None
    if len(raw) != length:
        raise Problem("malformed-json", "The body is not as long as its Content-Length.")
    try:
        return read_json(raw)
    except JsonTooLarge:
        raise Problem("body-too-large") from None
    except MalformedJson as malformed:
        raise Problem("malformed-json", f"The body is refused: {malformed.detail}.") from None


def _check_media_type(request: HttpRequest) -> None:
    charset = (request.content_params or {}).get("charset", "utf-8").strip('"').lower()
    if request.content_type != "application/json" or charset not in {"utf-8", "utf8"}:
        raise Problem("unsupported-media-type")
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in {"", "identity"}:
        raise Problem("unsupported-media-type", "Compressed bodies are not read.")


def _declared_length(request: HttpRequest) -> int:
    declared = str(request.META.get("CONTENT_LENGTH") or "")
    if "Transfer-Encoding" in request.headers or not declared:
        raise Problem("length-required")
    if not (declared.isascii() and declared.isdigit() and len(declared) <= _MOST_LENGTH_DIGITS):
        raise Problem("bad-request", "Content-Length is not a number of bytes.")
    if int(declared) > MOST_BYTES:
        raise Problem("body-too-large")
    return int(declared)
