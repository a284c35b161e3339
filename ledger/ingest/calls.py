"""What every view needs: the key that asks, a verb in its transaction, the problems it may answer with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from django.http import HttpRequest

from ledger.ingest.answers import ProblemAnswer
from ledger.ingest.errors import Problem
from ledger.ingest.problems import PROBLEMS
from ledger.ingest.shapes import retry_after, standing_fields
from ledger.lifecycle import NoRoomToPark, Standing, UnknownObject
from ledger.models import ApiKey
from ledger.rules.parking import RETRY_AFTER_S
from ledger.transactions import durable

_T = TypeVar("_T")
Responses = dict[Any, Any]

_ID = re.compile(r"(op|att|evt|dlv)_[0-9a-z]{26}", re.ASCII)


def key_of(request: HttpRequest) -> ApiKey:
    """The key that authenticated this request."""
    return cast("ApiKey", request.auth)  # type: ignore[attr-defined]


def tenant_of(request: HttpRequest) -> int:
    return key_of(request).tenant_id


def checked_id(text: str) -> str:
    """An id that could be one of ours. Raises `UnknownObject` for any other text."""
    if not _ID.fullmatch(text):
        raise UnknownObject
    return text


def call_verb(verb: Callable[..., _T], **arguments: Any) -> _T:
    """Call one verb of the lifecycle, in a transaction of its own."""
    return durable(lambda: verb(**arguments))


def tell_fact(verb: Callable[..., _T], **arguments: Any) -> _T:
    """Call a verb that takes a fact. What it has no room for is sent back, to be told again later."""
    try:
        return call_verb(verb, **arguments)
    except NoRoomToPark:
        raise Problem("parking-full", headers=retry_after(RETRY_AFTER_S)) from None


def problem_about(
    slug: str,
    request: HttpRequest,
    standing: Standing,
    *,
    detail: str = "",
    facts: Mapping[str, Any] | None = None,
    retry_after_s: float | None = None,
) -> Problem:
    """A problem that also says where its attempt stands."""
    fields = standing_fields(request, standing)
    waiting_helps = PROBLEMS[slug].retryable
    return Problem(
        slug,
        detail,
        operation_id=fields.pop("operation_id"),
        attempt_id=fields.pop("attempt_id"),
        facts={**fields, **(facts or {})},
        headers=retry_after(retry_after_s or standing.retry_after_s) if waiting_helps else {},
    )


def _problems(*statuses: int) -> Responses:
    return dict.fromkeys(statuses, ProblemAnswer)


READ_PROBLEMS = _problems(400, 401, 403, 404, 414, 422, 500, 503)
"""A call without a body."""

BODY_PROBLEMS = _problems(400, 401, 403, 411, 413, 414, 415, 422, 500, 503)
"""A call with a body, that names nothing by id."""

OBJECT_PROBLEMS = {**BODY_PROBLEMS, **_problems(404, 409)}
"""A call with a body about something that must exist and be in a fitting state."""

FACT_PROBLEMS = {**BODY_PROBLEMS, **_problems(404, 429)}
"""A call that tells a fact: what it is about need not exist, and its state refuses nothing."""
