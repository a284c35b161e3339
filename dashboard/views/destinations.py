"""Destinations: how they are, and what whoever administers their tenant does with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard import refusals
from dashboard.access import requires
from dashboard.asks import Adding, Asked, ShownOnce, ask, ask_again, ask_to_add
from dashboard.delivery_forms import DestinationForm, NothingToType, RotateForm
from dashboard.filters import one_value, pages
from dashboard.forms import DecisionForm
from dashboard.http import Request, go_to, page
from dashboard.templatetags.desk import span
from dashboard.views.deliveries import SECTION
from review import destinations
from review.destinations import DestinationRefused
from review.door import NotPermitted
from review.queries import BadFilter
from review.queries.delivery_words import ACK_WORDS
from review.queries.destinations import DestinationPage, destination_page, destinations_page, may_add_to

TEMPLATE = "dashboard/destination.html"
FORMS: dict[str, type[forms.Form]] = {
    "pause": DecisionForm,
    "resume": DecisionForm,
    "test": NothingToType,
    "rotate-secret": RotateForm,
}
ADDING_NEEDS = "You need the right to administer a tenant to add a destination to it."
PRESSES: Mapping[str, Callable[..., None]] = {"pause": destinations.pause, "resume": destinations.resume}


@requires("view")
@require_safe
def destination_list(request: Request) -> HttpResponse:
    try:
        found = destinations_page(request.user, cursor=one_value(request.GET, "cursor"))
    except BadFilter as error:
        return refusals.unreadable(request, error, whole=reverse("destinations"), section=SECTION)
    if not found.tenants:
        return refusals.no_tenants(request, section=SECTION)
    context = {
        "page": found,
        "counts": found.counts,
        "as_of": found.as_of,
        "section": SECTION,
        "tab": "destinations",
        **pages(request.GET, found.next_cursor),
    }
    return page(request, "dashboard/destinations.html", context)


@requires("view")
@require_safe
def destination(request: Request, destination_id: str) -> HttpResponse:
    return page(request, TEMPLATE, _context(destination_page(request.user, destination_id)))


@requires("administer")
@require_http_methods(["GET", "HEAD", "POST"])
def add_destination(request: Request) -> HttpResponse:
    tenants = may_add_to(request.user)
    if not tenants:
        refusal = NotPermitted(ADDING_NEEDS, granted_by=())
        back = reverse("destinations")
        return refusals.not_permitted(request, refusal, back=back, section=SECTION)
    form = DestinationForm(request.POST or None, tenants=tenants)

    def add(_: dict[str, Any]) -> HttpResponse:
        added = destinations.add(request.user, form.wanted)
        return _with_secret(request, added.destination_id, added.secret, "Added. Its secret, shown this once")

    adding = Adding(
        heading="Add a destination",
        says=(
            "It hears of settlements from now on, not of earlier ones. Its secret is shown once, on the next "
            "page."
        ),
        press="Add the destination",
        list=reverse("destinations"),
        what="destinations",
    )
    return ask_to_add(request, adding, form, add, section=SECTION)


@requires("administer")
@require_http_methods(["GET", "HEAD", "POST"])
def press_destination(request: Request, destination_id: str, kind: str) -> HttpResponse:
    """GET opens the form; POST has it done, and asks rights and facts anew whatever the page showed."""
    if kind not in FORMS:
        raise Http404
    if request.method != "POST":
        found = destination_page(request.user, destination_id)
        initial = {"replaces": found.newest_secret} if kind == "rotate-secret" else {}
        return _ask(request, found, kind, FORMS[kind](initial=initial))
    form = FORMS[kind](request.POST)
    try:
        destinations.administered(request.user, destination_id)
        if not form.is_valid():
            found = destination_page(request.user, destination_id)
            return _ask(request, found, kind, form, status=422)
        return _press(request, destination_id, kind, form)
    except NotPermitted as refusal:
        back, typed = _address(destination_id), request.POST.get("why", "")
        return refusals.not_permitted(request, refusal, back=back, section=SECTION, typed=typed)
    except DestinationRefused as refused:
        return _refused(request, destination_id, kind, form, str(refused))


def _press(request: Request, destination_id: str, kind: str, form: forms.Form) -> HttpResponse:
    user = request.user
    if kind == "rotate-secret":
        return _rotate(request, destination_id, form.cleaned_data)
    if kind == "test":
        destinations.send_test(user, destination_id)
    else:
        PRESSES[kind](user, destination_id, why=form.cleaned_data["why"])
    return go_to(request, f"{_address(destination_id)}#changes")


def _rotate(request: Request, destination_id: str, typed: dict[str, Any]) -> HttpResponse:
    """The answer holds the secret, which can be read nowhere afterwards: a redirect could not show it."""
    overlap = timedelta(hours=typed["overlap_h"])
    secret = destinations.rotate_secret(
        request.user, destination_id, overlap=overlap, replaces=typed["replaces"]
    )
    before = f" The one before signs beside it for {span(overlap.total_seconds())}." if overlap else ""
    return _with_secret(
        request,
        destination_id,
        secret,
        "The new secret, shown this once",
        before or " The one before has ended.",
    )


def _with_secret(
    request: Request, destination_id: str, secret: str, heading: str, before: str = ""
) -> HttpResponse:
    found = destination_page(request.user, destination_id)
    says = f"Give it to the consumer now: it is sealed here and nobody can show it again.{before}"
    once = ShownOnce(heading, "secret", secret, says)
    return page(request, TEMPLATE, {**_context(found), "once": once})


def _refused(request: Request, destination_id: str, kind: str, form: forms.Form, words: str) -> HttpResponse:
    now = destination_page(request.user, destination_id)
    return ask_again(request, TEMPLATE, _context(now), _asked(now, kind, form), words)


def _ask(
    request: Request, found: DestinationPage, kind: str, form: forms.Form, *, status: int = 200
) -> HttpResponse:
    return ask(request, TEMPLATE, _context(found), _asked(found, kind, form), status=status)


def _asked(found: DestinationPage, kind: str, form: forms.Form) -> Asked:
    destination_id = found.row.destination_id
    return Asked(
        press=found.press(kind),
        form=form,
        address=reverse("press_destination", args=[destination_id, kind]),
        back=_address(destination_id),
        whole_page=kind == "rotate-secret",
    )


def _address(destination_id: str) -> str:
    return reverse("destination", args=[destination_id])


def _context(found: DestinationPage) -> dict[str, Any]:
    destination_id = found.row.destination_id
    return {
        "page": found,
        "row": found.row,
        "as_of": found.as_of,
        "section": SECTION,
        "here": _address(destination_id),
        "list": reverse("destinations"),
        "ack_words": ACK_WORDS[found.ack],
        "presses": [
            (press, reverse("press_destination", args=[destination_id, press.kind]))
            for press in found.presses
        ],
    }
