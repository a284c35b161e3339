"""Where a list goes on: opaque, signed, and good for one tenant, list and set of filters only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core import signing

from ledger.ingest.errors import Problem
from ledger.rules.canonical import canonical_bytes, content_hash

_SALT = "ledger.ingest.cursor"


def list_hash(tenant_id: int, what: str, filters: Mapping[str, Any]) -> str:
    """Names one list of one tenant under one set of filters."""
    return content_hash(canonical_bytes([tenant_id, what, dict(filters)]))


def cursor_after(of_list: str, place: list[str | int]) -> str:
    """The cursor that goes on after `place`."""
    return signing.dumps([of_list, *place], salt=_SALT)


def place_in(of_list: str, cursor: str | None) -> list[Any] | None:
    """What `cursor_after` was given, or None at the beginning. Raises a `Problem` for any other cursor."""
    if cursor is None:
        return None
    try:
        said: list[Any] = signing.loads(cursor, salt=_SALT)
    except (signing.BadSignature, ValueError, TypeError):
        raise Problem("invalid-cursor") from None
    if said[0] != of_list:
        raise Problem("invalid-cursor")
    return said[1:]
