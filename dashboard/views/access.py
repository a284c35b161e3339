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
from dashboard.access_forms import (
    AdmitPersonForm,
    AwayForm,
    GiveScopeForm,
    NewPersonForm,
    RoleForm,
    TakeScopeForm,
)
from dashboard.asks import Adding, Asked, ShownOnce, ask, ask_again, ask_to_add
from dashboard.charge import SECTION, changes_charge, reads_charge
from dashboard.filters import one_value
from dashboard.forms import DecisionForm
from dashboard.http import Request, go_to, page
from ledger.models import User
from review import absences, access, accounts
from review.accounts import NewLink
from review.answers import Refused
from review.door import NotPermitted, require_administrator
from review.queries import NotVisible
from review.queries.access import PersonPage, access_page, own_rights, person_page
from review.queries.charge import administered
from review.roles import Role

TEMPLATE = "dashboard/person.html"
GRAVE = frozenset({"switch-off", "take-role"})
ABSENCE: Mapping[str, tuple[str, str, str]] = {
    "away": (
        "Away from the work of",
        "Until then no rule gives you anything. Open items ({owned}) stay yours: hand over what cannot wait.",
        "I am away until then",
    ),
    "back": ("Back at the work of", "Rules give you work again, from now on.", "I am back"),
}
"""Heading, consequence and button of what one says of oneself."""


@reads_charge
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


@requires("decide")
@require_http_methods(["GET", "HEAD", "POST"])
def own_absence(request: Request, slug: str, kind: str) -> HttpResponse:
    """What somebody says of their own absence: `away` or `back`."""
    here = next((each for each in own_rights(request.user).tenants if each.tenant.slug == slug), None)
    if here is None or kind not in ABSENCE:
        raise Http404

    def say(typed: dict[str, Any]) -> HttpResponse:
        PRESSES[kind](request.user, slug, request.user.pk, typed)
        return go_to(request, reverse("own_rights"))

    heading, says, press = ABSENCE[kind]
    adding = Adding(
        heading=f"{heading} {here.tenant.name}",
        says=says.format(owned=here.owned),
        press=press,
        list=reverse("own_rights"),
        what="permissions",
    )
    form = AwayForm(request.POST or None) if kind == "away" else DecisionForm(request.POST or None)
    return ask_to_add(request, adding, form, say, section="me")


@reads_charge
def person(request: Request, slug: str, person_id: int) -> HttpResponse:
    return page(request, TEMPLATE, _context(person_page(request.user, slug, person_id)))


@changes_charge
def add_person(request: Request, slug: str) -> HttpResponse:
    """A new account, and in the answer the link for its person: a redirect could not show it."""
    charge = administered(request.user, slug)

    def add(typed: dict[str, Any]) -> HttpResponse:
        link = accounts.make_account(
            request.user,
            slug,
            username=typed["username"],
            display_name=typed["display_name"],
            role=typed["role"],
            why=typed["why"],
        )
        return _with_link(request, slug, link)

    form = NewPersonForm(request.POST or None, roles=tuple(Role))
    adding = Adding(
        heading=f"Add a person to {charge.tenant.name}",
        says=(
            "Makes an account without a password, and a link to set one, which is shown once on the next "
            "page: you hand it over yourself, nothing is mailed."
        ),
        press="Add the person",
        list=_list(slug),
        what="people",
        other=reverse("admit_person", args=[slug]),
        other_words="They have an account already.",
    )
    return ask_to_add(request, adding, form, add, section=SECTION)


@changes_charge
def admit_person(request: Request, slug: str) -> HttpResponse:
    """Somebody who has an account already."""
    charge = administered(request.user, slug)

    def admit(typed: dict[str, Any]) -> HttpResponse:
        person_id = access.add_person(
            request.user, slug, username=typed["username"], role=typed["role"], why=typed["why"]
        )
        return go_to(request, _address(slug, person_id))

    form = AdmitPersonForm(request.POST or None, roles=tuple(Role))
    adding = Adding(
        heading=f"Give a role in {charge.tenant.name} to somebody who has an account",
        says="They sign in as ever, and see this tenant too. Ask them for their exact user name.",
        press="Give the role",
        list=_list(slug),
        what="people",
        other=reverse("add_person", args=[slug]),
        other_words="They have no account yet.",
    )
    return ask_to_add(request, adding, form, admit, section=SECTION)


@changes_charge
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
        link = PRESSES[kind](request.user, slug, person_id, form.cleaned_data)
    except Refused as refused:
        now = person_page(request.user, slug, person_id)
        return ask_again(request, TEMPLATE, _context(now), _asked(now, kind, form), str(refused))
    return _with_link(request, slug, link) if link else _after(request, slug, person_id)


def _with_link(request: Request, slug: str, link: NewLink) -> HttpResponse:
    found = person_page(request.user, slug, link.person_id)
    address = request.build_absolute_uri(reverse("set_password"))
    once = ShownOnce(
        heading=f"The link for {found.username}, shown this once",
        what="link",
        text=f"{address}#{link.code}",
        says=(
            f"Hand it to {found.username} yourself, on a way that only they read: nothing is mailed. Whoever "
            f"opens it sets the password. It works once, until {link.expires_at:%d %b %Y, %H:%M} UTC; a new "
            f"one ends it."
        ),
    )
    return page(request, TEMPLATE, {**_context(found), "once": once})


def _after(request: Request, slug: str, person_id: int) -> HttpResponse:
    """To the person; who has just taken their own charge away sees what is left to them."""
    try:
        person_page(request.user, slug, person_id)
    except (NotPermitted, NotVisible):
        return go_to(request, reverse("own_rights"))
    return go_to(request, f"{_address(slug, person_id)}#changes")


def _ask(
    request: Request, found: PersonPage, kind: str, form: forms.Form, *, status: int = 200
) -> HttpResponse:
    return ask(request, TEMPLATE, _context(found), _asked(found, kind, form), status=status)


def _asked(found: PersonPage, kind: str, form: forms.Form) -> Asked:
    slug = found.charge.tenant.slug
    return Asked(
        press=found.press(kind),
        form=form,
        address=reverse("press_person", args=[slug, found.user_id, kind]),
        back=_address(slug, found.user_id),
        grave=kind in GRAVE,
        whole_page=kind == "new-link",
    )


def _list(slug: str) -> str:
    return f"{reverse('access')}?tenant={slug}"


def _address(slug: str, person_id: int) -> str:
    return reverse("person", args=[slug, person_id])


def _context(found: PersonPage) -> dict[str, Any]:
    slug = found.charge.tenant.slug
    return {
        "page": found,
        "as_of": found.as_of,
        "section": SECTION,
        "here": _address(slug, found.user_id),
        "list": _list(slug),
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
    "new-link": lambda _, typed: DecisionForm(typed),
    "away": lambda _, typed: AwayForm(typed),
    "back": lambda _, typed: DecisionForm(typed),
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


PRESSES: Mapping[str, Callable[[User, str, int, dict[str, Any]], NewLink | None]] = {
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
    "new-link": lambda user, slug, who, typed: accounts.make_link(user, slug, who, why=typed["why"]),
    "away": lambda user, slug, who, typed: absences.mark_away(
        user, slug, who, until=typed["until"], why=typed["why"]
    ),
    "back": lambda user, slug, who, typed: absences.mark_back(user, slug, who, why=typed["why"]),
}
