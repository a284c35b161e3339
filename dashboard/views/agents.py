"""Agents and keys: what there is, and what an administrator does with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard import refusals
from dashboard.access import requires
from dashboard.agent_forms import AgentForm, NewKeyForm, OwnerForm, RotateKeyForm
from dashboard.asks import Asked
from dashboard.charge import SECTION, tells_who_is_in_charge
from dashboard.filters import one_value
from dashboard.forms import DecisionForm
from dashboard.http import Request, go_to, page, page_or_part
from review import agents
from review.agents import AgentRefused, NewKey
from review.door import require_administrator
from review.queries.agents import AgentPage, agent_page, agents_page, possible_owners
from review.queries.charge import in_charge
from review.queries.delivery_values import PressView

TEMPLATE = "dashboard/agent.html"


@dataclass(frozen=True)
class Asking:
    """What is asked before a press. `press` None: the button is gone; `key_id`: which key it is about."""

    press: PressView | None
    form: forms.Form
    address: str
    key_id: str = ""


@requires("audit")
@require_safe
@tells_who_is_in_charge
def agent_list(request: Request) -> HttpResponse:
    found = agents_page(request.user, one_value(request.GET, "tenant"))
    context = {"page": found, "as_of": found.as_of, "section": SECTION, "tab": "agents"}
    return page(request, "dashboard/agents.html", context)


@requires("audit")
@require_safe
@tells_who_is_in_charge
def agent(request: Request, slug: str, agent_id: int) -> HttpResponse:
    return page(request, TEMPLATE, _context(agent_page(request.user, slug, agent_id)))


@requires("administer")
@require_http_methods(["GET", "HEAD", "POST"])
@tells_who_is_in_charge
def add_agent(request: Request, slug: str) -> HttpResponse:
    charge = in_charge(request.user, slug)
    require_administrator(charge.tenant, charge.rights)
    form = AgentForm(request.POST or None, owners=possible_owners(charge.tenant))
    if request.method == "POST" and form.is_valid():
        typed = form.cleaned_data
        try:
            agent_id = agents.create(
                request.user, slug, name=typed["name"], owner=typed["owner"], why=typed["why"]
            )
        except AgentRefused as refused:
            form.add_error(refused.field or None, str(refused))
        else:
            return go_to(request, _address(slug, agent_id))
    status = 422 if form.is_bound else 200
    context = {"form": form, "charge": charge, "section": SECTION}
    return page(request, "dashboard/agent_add.html", context, status=status)


@requires("administer")
@require_http_methods(["GET", "HEAD", "POST"])
@tells_who_is_in_charge
def press_agent(request: Request, slug: str, agent_id: int, kind: str) -> HttpResponse:
    """Give it away, or make a key."""
    if kind not in ("give", "new-key"):
        raise Http404
    found = agent_page(request.user, slug, agent_id)
    address = reverse("press_agent", args=[slug, agent_id, kind])
    if kind == "give":
        owners = tuple(name for name in possible_owners(found.charge.tenant) if name != found.row.owner)
        form: forms.Form = OwnerForm(request.POST or None, owners=owners)
    else:
        form = NewKeyForm(request.POST or None, initial={"newest": found.newest, "scopes": "tool:*"})

    def work() -> NewKey | None:
        typed = form.cleaned_data
        if not isinstance(form, NewKeyForm):
            agents.give(request.user, slug, agent_id, owner=typed["owner"], why=typed["why"])
            return None
        return agents.create_key(
            request.user, slug, agent_id, grant=form.grant, newest=typed["newest"], why=typed["why"]
        )

    return _pressed(request, found, Asking(found.press(kind), form, address), work)


@requires("administer")
@require_http_methods(["GET", "HEAD", "POST"])
@tells_who_is_in_charge
def press_key(request: Request, slug: str, agent_id: int, key_id: str, kind: str) -> HttpResponse:
    """Rotate a key, or revoke it."""
    found = agent_page(request.user, slug, agent_id)
    key = found.key(key_id)
    if key is None or kind not in ("rotate", "revoke"):
        raise Http404
    address = reverse("press_key", args=[slug, agent_id, key_id, kind])
    initial = {"newest": found.newest}
    form = RotateKeyForm(request.POST or None, initial=initial) if kind == "rotate" else None
    asked = form or DecisionForm(request.POST or None)

    def work() -> NewKey | None:
        typed = asked.cleaned_data
        if form is None:
            agents.revoke_key(request.user, slug, agent_id, key_id, why=typed["why"])
            return None
        overlap = timedelta(hours=typed["overlap_h"])
        return agents.rotate_key(
            request.user,
            slug,
            agent_id,
            key_id,
            days=typed["days"],
            overlap=overlap,
            newest=typed["newest"],
            why=typed["why"],
        )

    return _pressed(request, found, Asking(key.press(kind), asked, address, key_id), work)


def _pressed(
    request: Request, found: AgentPage, asking: Asking, work: Callable[[], NewKey | None]
) -> HttpResponse:
    """GET opens the form; POST has it done. A new key stands in the answer: a redirect could not show it."""
    if request.method != "POST":
        return _ask(request, found, asking)
    require_administrator(found.charge.tenant, found.charge.rights)
    if not asking.form.is_valid():
        return _ask(request, found, asking, status=422)
    slug, agent_id = found.charge.tenant.slug, found.row.agent_id
    try:
        made = work()
    except AgentRefused as refused:
        return _refused(request, agent_page(request.user, slug, agent_id), asking, refused)
    if made is None:
        return go_to(request, f"{_address(slug, agent_id)}#changes")
    now = agent_page(request.user, slug, agent_id)
    return page(request, TEMPLATE, {**_context(now), "made": made})


def _refused(request: Request, now: AgentPage, asking: Asking, refused: AgentRefused) -> HttpResponse:
    """What was typed wrong is said where it was typed; what changed meanwhile, above the form."""
    if refused.field:
        asking.form.add_error(refused.field, str(refused))
        return _ask(request, now, asking, status=422)
    key = now.key(asking.key_id)
    there = key.press(asking.press.kind) if key and asking.press else asking.press
    if there is None:
        back, typed = _address(now.charge.tenant.slug, now.row.agent_id), request.POST.get("why", "")
        return refusals.too_late(request, str(refused), back=back, section=SECTION, typed=typed)
    return _ask(request, now, asking, refusal=str(refused), status=409)


def _ask(
    request: Request, found: AgentPage, asking: Asking, *, refusal: str = "", status: int = 200
) -> HttpResponse:
    here = _address(found.charge.tenant.slug, found.row.agent_id)
    if asking.press is None:
        return go_to(request, here)
    asked = Asked(
        asking.press,
        asking.form,
        asking.address,
        here,
        refusal=refusal,
        grave=asking.press.kind == "revoke",
        whole_page=asking.press.kind in ("new-key", "rotate"),
    )
    context = {**_context(found), "asked": asked, "asked_key": asking.key_id}
    return page_or_part(request, TEMPLATE, "decision", context, status=status)


def _address(slug: str, agent_id: int) -> str:
    return reverse("agent", args=[slug, agent_id])


def _context(found: AgentPage) -> dict[str, Any]:
    slug, agent_id = found.charge.tenant.slug, found.row.agent_id
    return {
        "page": found,
        "row": found.row,
        "as_of": found.as_of,
        "section": SECTION,
        "here": _address(slug, agent_id),
        "list": f"{reverse('agents')}?tenant={slug}",
        "presses": [
            (press, reverse("press_agent", args=[slug, agent_id, press.kind])) for press in found.presses
        ],
    }
