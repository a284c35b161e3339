"""What no address of a page may hold; the API has its own, stricter door."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase

_CONTROL = re.compile("[\x00-\x1f\x7f]")

GetResponse = Callable[[HttpRequest], HttpResponseBase]


def readable_addresses(get_response: GetResponse) -> GetResponse:
    """Middleware: control characters in a path or query are a 400, whatever page they are meant for."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if _CONTROL.search(request.path_info) or _holds_control(request.GET):
            raise BadRequest("The address holds control characters.")
        return get_response(request)

    return middleware


def _holds_control(query: QueryDict) -> bool:
    return any(_CONTROL.search(text) for name, values in query.lists() for text in (name, *values))
