"""Pages for those in charge of a tenant: how each says that somebody is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard import refusals
from dashboard.access import View, requires
from dashboard.http import Request
from review.door import NotPermitted
from review.queries import BadFilter, tenants_of

SECTION = "access"


def reads_charge(view: Callable[..., HttpResponse]) -> View:
    """A page for whoever administers or audits."""
    return requires("audit")(require_safe(tells_who_is_in_charge(view)))


def changes_charge(view: Callable[..., HttpResponse]) -> View:
    """A form for whoever administers, and its press."""
    return requires("administer")(require_http_methods(["GET", "HEAD", "POST"])(tells_who_is_in_charge(view)))


def tells_who_is_in_charge(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Who sees the work and is not in charge is told which right it takes and who gives it; what they typed
    is given back. What cannot be read in the address is told as well."""

    @wraps(view)
    def told(request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        if not kwargs and not request.GET.get("tenant") and not tenants_of(request.user):
            return refusals.no_tenants(request, section=SECTION)
        try:
            return view(request, *args, **kwargs)
        except NotPermitted as refusal:
            back, typed = reverse("own_rights"), request.POST.get("why", "")
            return refusals.not_permitted(request, refusal, back=back, section=SECTION, typed=typed)
        except BadFilter as error:
            return refusals.unreadable(request, error, whole=request.path, section=SECTION)

    return told
