"""The duplicate radar: what may have been done twice."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from dashboard import refusals
from dashboard.access import requires
from dashboard.http import Request, page
from review.queries.duplicates import duplicates_page


@requires("view")
@require_safe
def duplicates(request: Request) -> HttpResponse:
    found = duplicates_page(request.user)
    if not found.tenants:
        return refusals.no_tenants(request, section="review")
    context = {
        "page": found,
        "as_of": found.as_of,
        "section": "review",
        "groups": (
            (
                "keys",
                "The same arguments under several keys",
                "Two operations that ask for the same: meant twice, or one side effect under two names.",
                found.keys,
            ),
            (
                "hashes",
                "Several arguments under one key",
                "One name for different content: corrected, or posted by mistake.",
                found.hashes,
            ),
            (
                "records",
                "Several provider records of one correlation id",
                "The provider shows more than one effect of the same operation.",
                found.records,
            ),
        ),
    }
    return page(request, "dashboard/duplicates.html", context)
