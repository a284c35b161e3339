"""One operation: both lanes side by side, and its history."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import refusals
from dashboard.access import requires
from dashboard.filters import one_value
from dashboard.http import Request, page
from review.queries import BadFilter
from review.queries.operation import operation_page


@requires("view")
@require_safe
def operation(request: Request, operation_id: str) -> HttpResponse:
    try:
        found = operation_page(request.user, operation_id, before=one_value(request.GET, "before"))
    except BadFilter as error:
        whole = reverse("operation", args=[operation_id])
        return refusals.unreadable(request, error, whole=whole, section="deliveries")
    context = {
        "page": found,
        "as_of": found.as_of,
        "section": "deliveries",
        "older": f"?before={found.older}#history" if found.older else "",
        "newest": "?" if request.GET.get("before") else "",
    }
    return page(request, "dashboard/operation.html", context)
