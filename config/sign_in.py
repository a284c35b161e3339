"""Whose failed sign-ins are counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

LONGEST_COUNTED = 255


def counted_name(request: HttpRequest, credentials: Mapping[str, Any] | None = None) -> str | None:
    """The user name as typed, as long as the table of failures can hold it: nobody has a longer one."""
    typed = credentials.get("username") if credentials else request.POST.get("username")
    return None if typed is None else str(typed)[:LONGEST_COUNTED]
