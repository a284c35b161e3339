"""The numbers of the work, as a monitor reads them at /metrics, for the tenants of this person."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from dashboard import refusals
from dashboard.access import requires
from dashboard.http import Request, page
from review.queries.numbers import numbers_page


@requires("view")
@require_safe
def numbers(request: Request) -> HttpResponse:
    found = numbers_page(request.user)
    if not found.tenants:
        return refusals.no_tenants(request, section="numbers")
    return page(
        request, "dashboard/numbers.html", {"page": found, "as_of": found.as_of, "section": "numbers"}
    )
