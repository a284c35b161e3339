"""One press for every ticked item of the queue: claim, assign, snooze. Each is judged alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard import filters
from dashboard.access import requires
from dashboard.forms import AssignForm, DecisionForm
from dashboard.http import Request, SeeOther, page
from dashboard.ownership_forms import SnoozeForm
from review import many as review_many
from review import ownership
from review.many import NothingChosen, Own
from review.queries.chosen import assignees_for, chosen_items

LABELS: Mapping[str, str] = {"claim": "Claim", "assign": "Assign", "snooze": "Snooze"}
CONSEQUENCES: Mapping[str, str] = {
    "assign": "Gives each of them to one owner. An item you may not give away is left as it is.",
    "snooze": "Takes each of them off the active lists for a while; they stay due when they were.",
}


@requires("decide")
@require_http_methods(["GET", "HEAD", "POST"])
def many(request: Request, kind: str) -> HttpResponse:
    """A GET changes nothing and knows nothing of what was ticked: back to the list."""
    if kind not in LABELS:
        raise Http404
    if request.method != "POST":
        return SeeOther(_back(request))
    try:
        chosen = review_many.chosen_items(request.POST.getlist("item"))
    except NothingChosen as error:
        context = {**_context(request, kind), "nothing": str(error)}
        return page(request, "dashboard/many.html", context, status=422)
    form = _form(request, kind, chosen)
    if form is not None and not form.is_valid():
        return _ask(request, kind, chosen, form)
    return _do(request, kind, chosen, form)


def _form(request: Request, kind: str, chosen: tuple[str, ...]) -> DecisionForm | None:
    """What has to be typed, as typed; unbound while nothing was."""
    typed = request.POST if "why" in request.POST else None
    if kind == "assign":
        named = assignees_for(request.user, chosen)
        return AssignForm(typed, assignees=tuple((one.value, one.label) for one in named))
    return SnoozeForm(typed) if kind == "snooze" else None


def _ask(request: Request, kind: str, chosen: tuple[str, ...], form: DecisionForm) -> HttpResponse:
    context = {
        **_context(request, kind),
        "form": form,
        "items": chosen_items(request.user, chosen),
        "consequence": CONSEQUENCES[kind],
    }
    return page(request, "dashboard/many.html", context, status=422 if form.is_bound else 200)


def _do(request: Request, kind: str, chosen: tuple[str, ...], form: DecisionForm | None) -> HttpResponse:
    told = review_many.own_each(request.user, chosen, _own(kind, form.cleaned_data if form else {}))
    seen = {item.item_id: item for item in chosen_items(request.user, chosen)}
    context = {
        **_context(request, kind),
        "results": [(item_id, seen.get(item_id), refused) for item_id, refused in told],
        "done": sum(not refused for _, refused in told),
    }
    return page(request, "dashboard/many.html", context)


def _own(kind: str, typed: Mapping[str, Any]) -> Own:
    if kind == "assign":
        return partial(ownership.assign, to=typed["to"], why=typed["why"])
    if kind == "snooze":
        return partial(ownership.snooze, until=typed["end"], why=typed["why"])
    return ownership.claim


def _context(request: Request, kind: str) -> dict[str, Any]:
    return {"section": "review", "kind": kind, "label": LABELS[kind], "back": _back(request)}


def _back(request: Request) -> str:
    return reverse("queue") + filters.kept_query(request.GET)
