"""Facts that were told about what the ledger does not know: the list, one of them, and a person's word."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.access import requires
from dashboard.forms import DismissForm, NoteForm
from dashboard.http import Request, go_to, page
from review import parked
from review.answers import DecisionRefused
from review.door import NotPermitted
from review.queries import BadFilter
from review.queries.parked import ParkedPage, parked_fact_page, parked_page

SHOWN = ("", "dismissed")


@requires("view")
@require_safe
def parked_list(request: Request) -> HttpResponse:
    try:
        found = parked_page(request.user, dismissed=_is_dismissed(request), cursor=_cursor(request))
    except BadFilter as error:
        context = {"error": error, "section": "review"}
        return page(request, "dashboard/queue_unreadable.html", context, status=400)
    if not found.tenants:
        return page(request, "dashboard/no_tenants.html", {"section": "review"}, status=403)
    context = {
        "page": found,
        "as_of": found.as_of,
        "section": "review",
        "next_page": _address(found, cursor=found.next_cursor) if found.next_cursor else "",
        "first_page": _address(found) if _cursor(request) else "",
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
        return _not_permitted(request, fact_id, refusal, why)
    except DecisionRefused as refusal:
        return _show(request, fact_id, status=409, refusal=refusal.message, **typed)
    return go_to(request, reverse("parked_fact", args=[fact_id]) + "#notes")


def _show(request: Request, fact_id: str, *, status: int = 200, **more: object) -> HttpResponse:
    found = parked_fact_page(request.user, fact_id)
    forms = {"note": NoteForm(prefix="note"), "dismiss": DismissForm(prefix="dismiss")}
    context = {"page": found, "as_of": found.as_of, "section": "review", **forms, **more}
    return page(request, "dashboard/parked_fact.html", context, status=status)


def _not_permitted(request: Request, fact_id: str, refusal: NotPermitted, typed: str) -> HttpResponse:
    context = {
        "refusal": refusal.reason,
        "granted_by": refusal.granted_by,
        "typed": typed,
        "back": reverse("parked_fact", args=[fact_id]),
        "section": "review",
    }
    return page(request, "403.html", context, status=403)


def _address(found: ParkedPage, **place: str) -> str:
    show = {"show": "dismissed"} if found.dismissed else {}
    return f"{reverse('parked')}?{urlencode({**show, **place})}"


def _is_dismissed(request: Request) -> bool:
    shown = request.GET.get("show", "")
    if shown not in SHOWN:
        raise BadFilter("show", "There is no such list of parked facts.")
    return shown == "dismissed"


def _cursor(request: Request) -> str:
    return request.GET.get("cursor", "")
