"""The headers of a request, however the web framework hands them over."""

from collections.abc import Iterable
from typing import Any, Protocol

OURS = ("webhook-id", "webhook-timestamp", "webhook-signature", "ledger-delivery", "ledger-replay")


class HasItems(Protocol):
    """A mapping, or the like of one that may hold a name twice."""

    def items(self) -> Iterable[tuple[Any, Any]]: ...


Headers = HasItems | Iterable[tuple[Any, Any]]
"""A mapping or a list of pairs; names and values as text or bytes, a value also as a list of one. The names
may be those of a WSGI environ (`HTTP_WEBHOOK_ID`)."""


class Unreadable(Exception):
    """Which header it is, and why it is not taken."""


def ours(headers: Headers) -> dict[str, str]:
    """Our headers by their names in lower case; others are not looked at. Raises Unreadable."""
    found: dict[str, str] = {}
    for name, value in _pairs(headers):
        if (known := _name(name)) not in OURS:
            continue
        if known in found:
            raise Unreadable(f"the header {known} comes more than once")
        found[known] = _text(known, value)
    return found


def _pairs(headers: Any) -> list[tuple[Any, Any]]:
    try:
        return [(name, value) for name, value in (headers.items() if hasattr(headers, "items") else headers)]
    except (TypeError, ValueError):
        raise Unreadable("the headers are neither a mapping nor a list of pairs") from None


def _name(name: Any) -> str:
    text = name.decode("latin-1") if isinstance(name, bytes) else name
    if not isinstance(text, str):
        return ""
    if text.startswith("HTTP_"):
        text = text.removeprefix("HTTP_").replace("_", "-")
    return text.lower()


def _text(name: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        if len(value) != 1:
            raise Unreadable(f"the header {name} comes {len(value)} times")
        value = value[0]
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if not isinstance(text, str):
        raise Unreadable(f"the header {name} is no text")
    if not (text.isascii() and text.isprintable()):
        raise Unreadable(f"the header {name} holds characters that no header of ours has")
    return text
