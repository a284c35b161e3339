"""Teams: who is in them, and what whoever administers their tenant does with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import refusals
from dashboard.access import requires
from dashboard.filters import tenant_options
from dashboard.http import Request, go_to, page
from dashboard.ownership_forms import MemberForm, NewTeamForm, TeamNameForm
from review import teams
from review.door import NotPermitted
from review.queries.teams import TeamPage, TeamsPage, team_page, teams_page
from review.teams import TeamRefused

SECTION = "ownership"
PRESSES: Mapping[str, tuple[str, Callable[..., None]]] = {
    "rename": ("name", teams.rename),
    "add": ("username", teams.add_member),
    "remove": ("username", teams.remove_member),
}


@requires("view")
@require_safe
def team_list(request: Request) -> HttpResponse:
    found = teams_page(request.user)
    if not found.tenants:
        return refusals.no_tenants(request, section=SECTION)
    return _show_list(request, found)


@requires("administer")
@require_http_methods(["GET", "HEAD", "POST"])
def add_team(request: Request) -> HttpResponse:
    if request.method != "POST":
        return go_to(request, reverse("teams"))
    found = teams_page(request.user)
    form = NewTeamForm(request.POST, tenants=tenant_options(found.tenants))
    if not form.is_valid():
        return _show_list(request, found, form=form, status=422)
    try:
        team_id = teams.create(request.user, form.cleaned_data["tenant"], name=form.cleaned_data["name"])
    except NotPermitted as refusal:
        return refusals.not_permitted(request, refusal, back=reverse("teams"), section=SECTION)
    except TeamRefused as refusal:
        form.add_error(refusal.field, str(refusal))
        return _show_list(request, found, form=form, status=422)
    return go_to(request, reverse("team", args=[team_id]))


@requires("view")
@require_safe
def team(request: Request, team_id: int) -> HttpResponse:
    return _show(request, team_page(request.user, team_id))


@requires("administer")
@require_POST
def press_team(request: Request, team_id: int, kind: str) -> HttpResponse:
    if kind not in PRESSES:
        raise Http404
    field, press = PRESSES[kind]
    try:
        press(request.user, team_id, **{field: request.POST.get(field, "").strip()})
    except NotPermitted as refusal:
        back = reverse("team", args=[team_id])
        return refusals.not_permitted(request, refusal, back=back, section=SECTION)
    except TeamRefused as refusal:
        status = 422 if refusal.field else 409
        return _show(request, team_page(request.user, team_id), status=status, refused=(kind, str(refusal)))
    return go_to(request, reverse("team", args=[team_id]))


def _show_list(
    request: Request, found: TeamsPage, *, form: forms.Form | None = None, status: int = 200
) -> HttpResponse:
    blank = NewTeamForm(tenants=tenant_options(found.may_add_to))
    context = {"page": found, "as_of": found.as_of, "section": SECTION, "form": form or blank}
    return page(request, "dashboard/teams.html", context, status=status)


def _show(
    request: Request, found: TeamPage, *, status: int = 200, refused: tuple[str, str] = ("", "")
) -> HttpResponse:
    kind, words = refused
    context: dict[str, Any] = {
        "page": found,
        "row": found.row,
        "as_of": found.as_of,
        "section": SECTION,
        "refusal": words,
        "name_form": TeamNameForm(initial={"name": _typed(request, "name", found.row.name)}),
        "member_form": MemberForm(people=tuple((one.value, one.label) for one in found.candidates)),
        "refused_kind": kind,
    }
    return page(request, "dashboard/team.html", context, status=status)


def _typed(request: Request, field: str, otherwise: str) -> str:
    return request.POST.get(field, otherwise)
