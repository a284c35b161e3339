"""Facts that were told about what the ledger does not know: the list, one of them, and a person's word."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard import refusals
from dashboard.access import requires
from dashboard.filters import one_value, pages
from dashboard.forms import DismissForm, NoteForm
from dashboard.http import Request, go_to, page
from review import parked
from review.answers import DecisionRefused
from review.door import NotPermitted
from review.queries import BadFilter
from review.queries.parked import parked_fact_page, parked_page

SHOWN = ("", "dismissed")


@requires("view")
@require_safe
def parked_list(request: Request) -> HttpResponse:
    try:
        found = parked_page(
            request.user, dismissed=_is_dismissed(request), cursor=one_value(request.GET, "cursor")
        )
    except BadFilter as error:
        return refusals.unreadable(request, error, whole=reverse("parked"), section="review")
    if not found.tenants:
        return refusals.no_tenants(request, section="review")
    context = {
        "page": found,
        "as_of": found.as_of,
        "section": "review",
        **pages(request.GET, found.next_cursor, ("show", "cursor")),
    }
    return page(request, "dashboard/parked.html", context)


@requires("view")
@require_safe
def parked_fact(request: Request, fact_id: str) -> HttpResponse:
    return _show(request, fact_id)


@requires("decide")
@require_POST
def note_parked(request: Request, fact_id: str) -> HttpResponse:
    return _press(request, fact_id, NoteForm(request.POST, prefix="note"), parked.note)


@requires("decide")
@require_POST
def dismiss_parked(request: Request, fact_id: str) -> HttpResponse:
    return _press(request, fact_id, DismissForm(request.POST, prefix="dismiss"), parked.dismiss)


def _press(
    request: Request, fact_id: str, form: NoteForm | DismissForm, say: Callable[..., object]
) -> HttpResponse:
    typed = {"dismiss" if isinstance(form, DismissForm) else "note": form}
    why = form.cleaned_data["why"] if form.is_valid() else ""
    try:
        if not why and parked_fact_page(request.user, fact_id).rights.decide:
            return _show(request, fact_id, status=422, **typed)
        say(request.user, fact_id, why=why)
    except NotPermitted as refusal:
        back = reverse("parked_fact", args=[fact_id])
        return refusals.not_permitted(request, refusal, back=back, section="review", typed=why)
    except DecisionRefused as refusal:
        return _show(request, fact_id, status=409, refusal=refusal.message, **typed)
    return go_to(request, reverse("parked_fact", args=[fact_id]) + "#notes")


def _show(request: Request, fact_id: str, *, status: int = 200, **more: object) -> HttpResponse:
    found = parked_fact_page(request.user, fact_id)
    forms = {"note": NoteForm(prefix="note"), "dismiss": DismissForm(prefix="dismiss")}
    context = {"page": found, "as_of": found.as_of, "section": "review", **forms, **more}
    return page(request, "dashboard/parked_fact.html", context, status=status)


def _is_dismissed(request: Request) -> bool:
    shown = request.GET.get("show", "")
    if shown not in SHOWN:
        raise BadFilter("show", "There is no such list of parked facts.")
    return shown == "dismissed"
