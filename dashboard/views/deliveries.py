"""Deliveries: the list, one of them, and what a person has done with it. No tool can be reached from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard import delivery_filters as filters
from dashboard import refusals
from dashboard.access import requires
from dashboard.asks import Asked, ask
from dashboard.filters import is_filtered, pages, same_words, shown_values, tenant_options
from dashboard.forms import DecisionForm
from dashboard.http import Request, go_to, page, page_or_part
from ledger.rules.states import DeliveryState
from review import deliveries
from review.deliveries import RedeliveryRefused
from review.door import NotPermitted
from review.queries import BadFilter
from review.queries.deliveries import deliveries_page
from review.queries.delivery import delivery_page
from review.queries.delivery_values import DeliveriesPage, DeliveryPage
from review.queries.delivery_words import ACK_WORDS, END_WORDS

SECTION = "deliveries"
TEMPLATE = "dashboard/delivery.html"
PRESSES: Mapping[str, Callable[..., int]] = {
    "redeliver": deliveries.redeliver,
    "dead-letter": deliveries.give_up,
}


@requires("view")
@require_safe
def delivery_list(request: Request) -> HttpResponse:
    try:
        asked, shown = filters.read_filters(request.GET), shown_values(request.GET, filters.FIELDS)
        found = deliveries_page(request.user, asked)
    except BadFilter as error:
        return refusals.unreadable(request, error, whole=reverse("deliveries"), section=SECTION)
    if not found.tenants:
        return refusals.no_tenants(request, section=SECTION)
    context = {
        "page": found,
        "counts": found.counts,
        "as_of": found.as_of,
        "section": SECTION,
        "whole_section": True,
        "tab": "deliveries",
        "shown": shown,
        "filtered": is_filtered(request.GET, filters.FIELDS),
        "query": filters.kept(request.GET),
        **pages(request.GET, found.next_cursor, filters.FIELDS),
        "states": same_words(DeliveryState),
        "destinations": _destination_options(found),
        "tenants": tenant_options(found.tenants),
        "errors": tuple(END_WORDS.items()),
    }
    return page(request, "dashboard/deliveries.html", context)


@requires("view")
@require_safe
def delivery(request: Request, delivery_id: str) -> HttpResponse:
    try:
        found = delivery_page(request.user, delivery_id, shown_try=request.GET.get("try", ""))
    except BadFilter as error:
        whole = delivery_address(request, delivery_id)
        return refusals.unreadable(request, error, whole=whole, section=SECTION)
    number = request.GET.get("answer", "")
    answer = next((event for event in found.events if str(event.sequence) == number), None)
    context = {**_context(request, found), "answer": answer}
    return page_or_part(request, TEMPLATE, "try", context)


@requires("decide")
@require_http_methods(["GET", "HEAD", "POST"])
def press_delivery(request: Request, delivery_id: str, kind: str) -> HttpResponse:
    """GET opens the form; POST has it done, and asks rights and facts anew whatever the page showed."""
    if kind not in PRESSES:
        raise Http404
    found = delivery_page(request.user, delivery_id)
    if request.method != "POST":
        return _ask(request, found, kind, DecisionForm())
    form = DecisionForm(request.POST)
    try:
        if not form.is_valid() and found.rights.decide:
            return _ask(request, found, kind, form, status=422)
        number = PRESSES[kind](request.user, delivery_id, why=form.cleaned_data.get("why", ""))
    except NotPermitted as refusal:
        back = delivery_address(request, delivery_id)
        typed = request.POST.get("why", "")
        return refusals.not_permitted(request, refusal, back=back, section=SECTION, typed=typed)
    except RedeliveryRefused as refused:
        now = delivery_page(request.user, delivery_id)
        return _ask(request, now, kind, form, refusal=str(refused), status=409)
    return go_to(request, delivery_address(request, delivery_id, answer=str(number)) + "#answer")


def delivery_address(request: Request, delivery_id: str, **more: str) -> str:
    """The delivery's page within the list the person came from."""
    return reverse("delivery", args=[delivery_id]) + filters.kept(request.GET, **more)


def _destination_options(found: DeliveriesPage) -> list[tuple[str, str]]:
    """By id; of which tenant, where that is not plain."""
    several = len(found.tenants) > 1
    return [
        (one.destination_id, f"{one.name} ({one.tenant.name})" if several else one.name)
        for one in found.destinations
    ]


def _ask(
    request: Request,
    found: DeliveryPage,
    kind: str,
    form: DecisionForm,
    *,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    delivery_id = found.row.delivery_id
    asked = Asked(
        press=found.press(kind),
        form=form,
        address=reverse("press_delivery", args=[delivery_id, kind]) + filters.kept(request.GET),
        back=delivery_address(request, delivery_id),
        refusal=refusal,
        grave=kind == "dead-letter",
    )
    return ask(request, TEMPLATE, _context(request, found), asked, status=status)


def _context(request: Request, found: DeliveryPage) -> dict[str, Any]:
    query = filters.kept(request.GET)
    delivery_id = found.row.delivery_id
    return {
        "page": found,
        "as_of": found.as_of,
        "section": SECTION,
        "query": query,
        "ack_words": ACK_WORDS[found.ack],
        "list_address": reverse("deliveries") + query,
        "here": delivery_address(request, delivery_id),
        "try_address": delivery_address(request, delivery_id, **{"try": ""}),
        "presses": [
            (press, reverse("press_delivery", args=[delivery_id, press.kind]) + query)
            for press in found.presses
        ],
    }
