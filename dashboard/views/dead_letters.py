"""Dead letters by destination and class of error, and the plans that redeliver many of them."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import refusals
from dashboard.access import requires
from dashboard.delivery_forms import FreezeForm
from dashboard.filters import one_value, pages
from dashboard.http import Request, go_to, page
from dashboard.views.deliveries import SECTION
from review import deliveries
from review.deliveries import RedeliveryRefused
from review.door import NotPermitted
from review.queries import BadFilter
from review.queries.dead_letters import DeadFilter, dead_letters_page, to_freeze
from review.queries.redeliveries import PlanPage, plan_page


@requires("view")
@require_safe
def dead_letters(request: Request) -> HttpResponse:
    found = dead_letters_page(request.user)
    if not found.tenants:
        return refusals.no_tenants(request, section=SECTION)
    context = {
        "page": found,
        "counts": found.counts,
        "as_of": found.as_of,
        "section": SECTION,
        "tab": "dead_letters",
    }
    return page(request, "dashboard/dead_letters.html", context)


@requires("decide")
@require_http_methods(["GET", "HEAD", "POST"])
def freeze(request: Request) -> HttpResponse:
    """GET counts what would be frozen; POST freezes what was dead when it was counted."""
    try:
        chosen = DeadFilter(one_value(request.GET, "destination"), one_value(request.GET, "error"))
        if request.method != "POST":
            return _confirm(request, chosen)
        return _freeze(request, chosen)
    except BadFilter as error:
        return refusals.unreadable(request, error, whole=reverse("dead_letters"), section=SECTION)


@requires("view")
@require_safe
def plan(request: Request, plan_id: str) -> HttpResponse:
    try:
        found = plan_page(request.user, plan_id, cursor=one_value(request.GET, "cursor"))
    except BadFilter as error:
        here = reverse("redelivery_plan", args=[plan_id])
        return refusals.unreadable(request, error, whole=here, section=SECTION)
    return page(request, "dashboard/redelivery_plan.html", _plan_context(request, found))


@requires("decide")
@require_POST
def cancel_plan(request: Request, plan_id: str) -> HttpResponse:
    here = reverse("redelivery_plan", args=[plan_id])
    try:
        deliveries.cancel_plan(request.user, plan_id)
    except NotPermitted as refusal:
        return refusals.not_permitted(request, refusal, back=here, section=SECTION)
    except RedeliveryRefused as refused:
        return refusals.too_late(request, str(refused), back=here, section=SECTION)
    return go_to(request, here)


def _freeze(request: Request, chosen: DeadFilter) -> HttpResponse:
    form = FreezeForm(request.POST)
    try:
        deliveries.require_planner(request.user, chosen)
        if not form.is_valid():
            return _confirm(request, chosen, form, status=422)
        plan_id = deliveries.plan_redelivery(request.user, chosen, **form.cleaned_data)
    except NotPermitted as refusal:
        why, back = request.POST.get("why", ""), reverse("dead_letters")
        return refusals.not_permitted(request, refusal, back=back, section=SECTION, typed=why)
    except RedeliveryRefused as refused:
        return _confirm(request, chosen, form, refusal=str(refused), status=409)
    return go_to(request, reverse("redelivery_plan", args=[plan_id]))


def _confirm(
    request: Request,
    chosen: DeadFilter,
    form: FreezeForm | None = None,
    *,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    found = to_freeze(request.user, chosen)
    query = {"destination": chosen.destination, **({"error": chosen.error} if chosen.error else {})}
    listed = urlencode({"state": "DEAD_LETTERED", **query})
    context = {
        "page": found,
        "as_of": found.as_of,
        "section": SECTION,
        "form": form or FreezeForm(initial={"until": found.as_of.isoformat()}),
        "address": f"{reverse('freeze')}?{urlencode(query)}",
        "listed": f"{reverse('deliveries')}?{listed}",
        "refusal": refusal,
    }
    return page(request, "dashboard/redelivery_confirm.html", context, status=status)


def _plan_context(request: Request, found: PlanPage) -> dict[str, Any]:
    return {
        "page": found,
        "as_of": found.as_of,
        "section": SECTION,
        "presses": [(found.cancel, reverse("cancel_plan", args=[found.plan_id]))],
        **pages(request.GET, found.next_cursor),
    }
