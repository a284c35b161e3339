"""Make the served OpenAPI document true: problems are problem+json, headers are named, kinds are listed."""

from __future__ import annotations

from typing import Any

from ledger.ingest.errors import PROBLEM_JSON, REQUEST_ID
from ledger.ingest.problems import PROBLEMS
from ledger.ingest.shapes import REPLAYED
from ledger.ingest.waiting import APPLIED

_FIRST_ERROR = 400
_UNAUTHORIZED, _CONFLICT, _TOO_MANY, _UNAVAILABLE = 401, 409, 429, 503

_HEADERS: dict[str, dict[str, Any]] = {
    REQUEST_ID: {"description": "Of this request, made by the ledger.", "schema": {"type": "string"}},
    REPLAYED: {
        "description": "`true` where this very call was answered before.",
        "schema": {"const": "true"},
    },
    "Retry-After": {
        "description": "Seconds after which it is worth asking again.",
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    },
    APPLIED: {
        "description": "The preference that was honoured: `wait=N`.",
        "schema": {"type": "string", "pattern": "^wait=[0-9]+$"},
    },
    "WWW-Authenticate": {"description": "How to authenticate.", "schema": {"type": "string"}},
}


def made_true(document: dict[str, Any]) -> dict[str, Any]:
    """The document with each answer as it is really given."""
    for calls in document["paths"].values():
        for call in calls.values():
            call["responses"] = {
                str(status): _response(int(status), response)
                for status, response in sorted(call["responses"].items())
            }
    document["components"].setdefault("schemas", {})["ProblemKinds"] = _kinds()
    return document


def _response(status: int, response: dict[str, Any]) -> dict[str, Any]:
    content = response.get("content", {})
    if status >= _FIRST_ERROR:
        content = {PROBLEM_JSON: content["application/json"]}
        slugs = ", ".join(f"`{kind.slug}`" for kind in PROBLEMS.values() if kind.status == status)
        response = {**response, "description": f"{response['description']}: {slugs}."}
    return {**response, "headers": {name: _HEADERS[name] for name in _headers_of(status)}, "content": content}


def _headers_of(status: int) -> list[str]:
    names = [REQUEST_ID]
    if status < _FIRST_ERROR:
        names += [REPLAYED, "Retry-After", APPLIED]
    if status in (_CONFLICT, _TOO_MANY, _UNAVAILABLE):
        names.append("Retry-After")
    if status == _UNAUTHORIZED:
        names.append("WWW-Authenticate")
    return names


def _kinds() -> dict[str, Any]:
    lines = [f"- `{kind.type}` ({kind.status}): {kind.explanation}" for kind in PROBLEMS.values()]
    return {
        "type": "string",
        "description": "Every `type` of problem.\n\n" + "\n".join(lines),
        "enum": [kind.type for kind in PROBLEMS.values()],
    }
