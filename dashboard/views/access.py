"""Access: the people of a tenant, one of them, and what an administrator does; and everybody's own rights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard import refusals
from dashboard.access import requires
from dashboard.access_forms import AddPersonForm, GiveScopeForm, RoleForm, TakeScopeForm
from dashboard.asks import Asked
from dashboard.charge import SECTION, tells_who_is_in_charge
from dashboard.filters import one_value
from dashboard.forms import DecisionForm
from dashboard.http import Request, go_to, page, page_or_part
from ledger.models import User
from review import access
from review.access import AccessRefused
from review.door import NotPermitted, require_administrator
from review.queries import NotVisible
from review.queries.access import PersonPage, access_page, own_rights, person_page
from review.queries.charge import in_charge
from review.roles import Role

TEMPLATE = "dashboard/person.html"
GRAVE = frozenset({"switch-off", "take-role"})


@requires("audit")
@require_safe
@tells_who_is_in_charge
def access_list(request: Request) -> HttpResponse:
    found = access_page(request.user, one_value(request.GET, "tenant"))
    context = {"page": found, "as_of": found.as_of, "section": SECTION, "tab": "people"}
    return page(request, "dashboard/access.html", context)


@requires("view")
@require_safe
def own(request: Request) -> HttpResponse:
    found = own_rights(request.user)
    if not found.tenants:
        return refusals.no_tenants(request, section="me")
    return page(request, "dashboard/own_rights.html", {"page": found, "as_of": found.as_of, "section": "me"})


@requires("audit")
@require_safe
@tells_who_is_in_charge
def person(request: Request, slug: str, person_id: int) -> HttpResponse:
    return page(request, TEMPLATE, _context(person_page(request.user, slug, person_id)))


@requires("administer")
@require_http_methods(["GET", "HEAD", "POST"])
@tells_who_is_in_charge
def add_person(request: Request, slug: str) -> HttpResponse:
    charge = in_charge(request.user, slug)
    require_administrator(charge.tenant, charge.rights)
    form = AddPersonForm(request.POST or None, roles=tuple(Role))
    if request.method == "POST" and form.is_valid():
        typed = form.cleaned_data
        try:
            person_id = access.add_person(
                request.user, slug, username=typed["username"], role=typed["role"], why=typed["why"]
            )
        except AccessRefused as refused:
            form.add_error("username", str(refused))
        else:
            return go_to(request, _address(slug, person_id))
    status = 422 if form.is_bound else 200
    context = {"form": form, "charge": charge, "section": SECTION}
    return page(request, "dashboard/access_add.html", context, status=status)


@requires("administer")
@require_http_methods(["GET", "HEAD", "POST"])
@tells_who_is_in_charge
def press_person(request: Request, slug: str, person_id: int, kind: str) -> HttpResponse:
    """GET opens the form; POST has it done, and asks rights and facts anew whatever the page showed."""
    if kind not in FORMS:
        raise Http404
    found = person_page(request.user, slug, person_id)
    if request.method != "POST":
        return _ask(request, found, kind, FORMS[kind](found, None))
    require_administrator(found.charge.tenant, found.charge.rights)
    form = FORMS[kind](found, request.POST)
    if not form.is_valid():
        return _ask(request, found, kind, form, status=422)
    try:
        PRESSES[kind](request.user, slug, person_id, form.cleaned_data)
    except AccessRefused as refused:
        return _refused(request, slug, person_id, kind, form, str(refused))
    return _after(request, slug, person_id)


def _after(request: Request, slug: str, person_id: int) -> HttpResponse:
    """To the person; who has just taken their own charge away sees what is left to them."""
    try:
        person_page(request.user, slug, person_id)
    except (NotPermitted, NotVisible):
        return go_to(request, reverse("own_rights"))
    return go_to(request, f"{_address(slug, person_id)}#changes")


def _refused(
    request: Request, slug: str, person_id: int, kind: str, form: forms.Form, words: str
) -> HttpResponse:
    """The page as it is now; where the button is gone, only why."""
    now = person_page(request.user, slug, person_id)
    if now.press(kind) is None:
        back, typed = _address(slug, person_id), request.POST.get("why", "")
        return refusals.too_late(request, words, back=back, section=SECTION, typed=typed)
    return _ask(request, now, kind, form, refusal=words, status=409)


def _ask(
    request: Request,
    found: PersonPage,
    kind: str,
    form: forms.Form,
    *,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    slug, here = found.charge.tenant.slug, _address(found.charge.tenant.slug, found.user_id)
    press = found.press(kind)
    if press is None:
        return go_to(request, here)
    address = reverse("press_person", args=[slug, found.user_id, kind])
    asked = Asked(press, form, address, here, refusal=refusal, grave=kind in GRAVE)
    return page_or_part(request, TEMPLATE, "decision", {**_context(found), "asked": asked}, status=status)


def _address(slug: str, person_id: int) -> str:
    return reverse("person", args=[slug, person_id])


def _context(found: PersonPage) -> dict[str, Any]:
    slug = found.charge.tenant.slug
    return {
        "page": found,
        "as_of": found.as_of,
        "section": SECTION,
        "here": _address(slug, found.user_id),
        "list": f"{reverse('access')}?tenant={slug}",
        "presses": [
            (press, reverse("press_person", args=[slug, found.user_id, press.kind]))
            for press in found.presses
        ],
    }


def _give_role(found: PersonPage, typed: Any) -> forms.Form:
    return RoleForm(typed, roles=tuple(role for role in Role if role not in found.stored))


def _take_scope(found: PersonPage, typed: Any) -> forms.Form:
    return TakeScopeForm(typed, scopes=[(scope.pk, str(scope)) for scope in found.scopes])


FORMS: Mapping[str, Callable[[PersonPage, Any], forms.Form]] = {
    "give-role": _give_role,
    "take-role": lambda found, typed: RoleForm(typed, roles=found.stored),
    "give-scope": lambda _, typed: GiveScopeForm(typed),
    "take-scope": _take_scope,
    "switch-off": lambda _, typed: DecisionForm(typed),
    "switch-on": lambda _, typed: DecisionForm(typed),
}


def _press_give_scope(user: User, slug: str, person_id: int, typed: dict[str, Any]) -> None:
    access.give_scope(
        user,
        slug,
        person_id,
        tool_glob=typed["tools"],
        effects=tuple(typed["effects"]),
        why=typed["why"],
    )


PRESSES: Mapping[str, Callable[[User, str, int, dict[str, Any]], None]] = {
    "give-role": lambda user, slug, who, typed: access.give_role(
        user, slug, who, role=typed["role"], why=typed["why"]
    ),
    "take-role": lambda user, slug, who, typed: access.take_role_away(
        user, slug, who, role=typed["role"], why=typed["why"]
    ),
    "give-scope": _press_give_scope,
    "take-scope": lambda user, slug, who, typed: access.take_scope_away(
        user, slug, who, scope_id=typed["scope"], why=typed["why"]
    ),
    "switch-off": lambda user, slug, who, typed: access.switch_off(user, slug, who, why=typed["why"]),
    "switch-on": lambda user, slug, who, typed: access.switch_on(user, slug, who, why=typed["why"]),
}
