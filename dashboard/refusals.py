"""The pages that say no: a right is missing, it is not possible any more, a filter cannot be read."""

from __future__ import annotations

from django.http import HttpResponse

from dashboard.http import Request, page
from review.door import NotPermitted
from review.queries import BadFilter


def not_permitted(
    request: Request, refusal: NotPermitted, *, back: str, section: str, typed: str = ""
) -> HttpResponse:
    context = {
        "refusal": refusal.reason,
        "granted_by": [name for name in refusal.granted_by if name != request.user.get_username()],
        "typed": typed,
        "back": back,
        "section": section,
    }
    return page(request, "403.html", context, status=403)


def too_late(request: Request, words: str, *, back: str, section: str, typed: str = "") -> HttpResponse:
    context = {
        "refusal": words,
        "typed": typed,
        "back": back,
        "back_words": "Show it as it is now",
        "section": section,
    }
    return page(request, "409.html", context, status=409)


def unreadable(request: Request, error: BadFilter, *, whole: str, section: str) -> HttpResponse:
    context = {"error": error, "whole": whole, "section": section}
    return page(request, "dashboard/queue_unreadable.html", context, status=400)


def no_tenants(request: Request, *, section: str) -> HttpResponse:
    return page(request, "dashboard/no_tenants.html", {"section": section}, status=403)
