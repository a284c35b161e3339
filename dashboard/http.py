"""Answers the pages give: whole pages, fragments for htmx, and 303s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from ledger.models import User


class Request(HttpRequest):
    """A request of somebody who has signed in."""

    htmx: HtmxDetails
    user: User


class SeeOther(HttpResponseRedirect):
    """Look there next, with GET."""

    status_code = 303


class CompressPages(GZipMiddleware):
    """Pages and their files go compressed; the API's short answers do not gain from it."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.path_info.startswith("/api/"):
            return response
        return super().process_response(request, response)


def page(
    request: HttpRequest, template: str, context: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    """A whole page. Never kept by a cache: what it says was true when it was read."""
    response = render(request, template, dict(context), status=status)
    return _fresh(response)


def page_or_part(
    request: Request, template: str, part: str, context: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    """The named part alone where htmx asks, else the page it stands in."""
    name = f"{template}#{part}" if wants_part(request) else template
    return page(request, name, context, status=status)


def wants_part(request: Request) -> bool:
    return bool(request.htmx) and not request.htmx.history_restore_request


def go_to(request: HttpRequest, address: str) -> HttpResponse:
    """Send the browser there: 303, or for htmx a header that loads the whole page."""
    htmx = getattr(request, "htmx", None)
    return _fresh(HttpResponseClientRedirect(address) if htmx else SeeOther(address))


def here(request: HttpRequest) -> str:
    """The page the person is on, as a path: around the fragment for htmx, before the press for a POST."""
    htmx = getattr(request, "htmx", None)
    shown = (htmx.current_url if htmx else "") or ""
    if not shown and request.method == "POST":
        shown = request.headers.get("Referer", "")
    if not shown:
        return request.get_full_path()
    parts = urlsplit(shown)
    if parts.netloc != request.get_host():
        return "/"
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _fresh(response: HttpResponse) -> HttpResponse:
    patch_vary_headers(response, ["HX-Request"])
    patch_cache_control(response, no_store=True, private=True)
    return response
