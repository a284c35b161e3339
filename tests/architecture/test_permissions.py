"""Every address says who may use it."""

from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

OPEN_TO_ALL = {"config.health.healthz", "config.health.readyz"}
DECLARED = {"public", "view", "decide", "administer"}


def test_every_page_declares_who_may_open_it() -> None:
    pages = [view for view in views_of(get_resolver()) if not is_api(view)]
    undeclared = [
        dotted_name(view)
        for view in pages
        if getattr(view, "access", None) not in DECLARED and dotted_name(view) not in OPEN_TO_ALL
    ]
    assert undeclared == []
    assert len(pages) > len(OPEN_TO_ALL)


def views_of(resolver: URLResolver) -> Iterator[Any]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from views_of(pattern)
        elif isinstance(pattern, URLPattern):
            yield pattern.callback


def is_api(view: Any) -> bool:
    return str(view.__module__).startswith(("ninja", "ledger.ingest"))


def dotted_name(view: Any) -> str:
    return f"{view.__module__}.{view.__qualname__}"
