"""Providers: how they are configured and how they answer. They are set up on the machine itself."""

from __future__ import annotations

from django.http import HttpResponse

from dashboard.charge import SECTION, reads_charge
from dashboard.filters import one_value
from dashboard.http import Request, page
from review.queries.providers import providers_page


@reads_charge
def provider_list(request: Request) -> HttpResponse:
    found = providers_page(request.user, one_value(request.GET, "tenant"))
    context = {"page": found, "as_of": found.as_of, "section": SECTION, "tab": "providers"}
    return page(request, "dashboard/providers.html", context)
