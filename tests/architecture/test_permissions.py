"""Every address says who may use it."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

OPEN_TO_ALL = {"config.health.healthz", "config.health.readyz", "config.metrics.metrics"}
UNAUTHORIZED = 401
DECLARED = {"public", "view", "decide", "administer", "audit"}


def test_every_page_declares_who_may_open_it() -> None:
    pages = [view for view in views_of(get_resolver()) if not is_api(view)]
    undeclared = [
        dotted_name(view)
        for view in pages
        if getattr(view, "access", None) not in DECLARED and dotted_name(view) not in OPEN_TO_ALL
    ]
    assert undeclared == []
    assert len(pages) > len(OPEN_TO_ALL)


@pytest.mark.django_db
def test_every_call_of_the_api_asks_for_a_key(client: Client) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    calls = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    open_calls = [
        f"{method} {path}"
        for method, path in calls
        if client.generic(method, path, "{}", content_type="application/json").status_code != UNAUTHORIZED
    ]
    assert open_calls in ([], ["GET /api/v1/openapi.json"])
    assert len(calls) > 10


def views_of(resolver: URLResolver) -> Iterator[Any]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from views_of(pattern)
        elif isinstance(pattern, URLPattern):
            callback = pattern.callback
            yield callback.func if isinstance(callback, partial) else callback


def is_api(view: Any) -> bool:
    return str(view.__module__).startswith(("ninja", "ledger.ingest"))


def dotted_name(view: Any) -> str:
    return f"{view.__module__}.{view.__qualname__}"
