"""Agents and keys: what there is, and what an administrator does with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.urls import reverse

from dashboard.agent_forms import AgentForm, NewKeyForm, OwnerForm, RotateKeyForm
from dashboard.asks import Adding, Asked, ShownOnce, ask, ask_again, ask_to_add
from dashboard.charge import SECTION, changes_charge, reads_charge
from dashboard.filters import one_value
from dashboard.forms import DecisionForm
from dashboard.http import Request, go_to, page
from ledger.access import Grant
from ledger.models import User
from review import agents
from review.agents import AgentRefused, NewKey
from review.door import require_administrator
from review.queries.agents import AgentPage, agent_page, agents_page, possible_owners
from review.queries.charge import administered

TEMPLATE = "dashboard/agent.html"
GRAVE = frozenset({"revoke", "switch-off"})
SHOW_A_KEY = frozenset({"new-key", "rotate"})


@dataclass(frozen=True)
class Pressing:
    """What somebody is about to press, of an agent or of one of its keys."""

    kind: str
    form: forms.Form
    key_id: str = ""

    def asked_on(self, found: AgentPage) -> Asked:
        """As the page is now."""
        key = found.key(self.key_id)
        parts = [found.charge.tenant.slug, found.row.agent_id]
        address = (
            reverse("press_key", args=[*parts, self.key_id, self.kind])
            if self.key_id
            else reverse("press_agent", args=[*parts, self.kind])
        )
        return Asked(
            press=key.press(self.kind) if key else found.press(self.kind),
            form=self.form,
            address=address,
            back=reverse("agent", args=parts),
            grave=self.kind in GRAVE,
            whole_page=self.kind in SHOW_A_KEY,
        )


@reads_charge
def agent_list(request: Request) -> HttpResponse:
    found = agents_page(request.user, one_value(request.GET, "tenant"))
    context = {"page": found, "as_of": found.as_of, "section": SECTION, "tab": "agents"}
    return page(request, "dashboard/agents.html", context)


@reads_charge
def agent(request: Request, slug: str, agent_id: int) -> HttpResponse:
    return page(request, TEMPLATE, _context(agent_page(request.user, slug, agent_id)))


@changes_charge
def add_agent(request: Request, slug: str) -> HttpResponse:
    charge = administered(request.user, slug)

    def add(typed: dict[str, Any]) -> HttpResponse:
        agent_id = agents.create(
            request.user, slug, name=typed["name"], owner=typed["owner"], why=typed["why"]
        )
        return go_to(request, _address(slug, agent_id))

    form = AgentForm(request.POST or None, owners=possible_owners(charge.tenant))
    adding = Adding(
        heading=f"Add an agent to {charge.tenant.name}",
        says=(
            "A program that posts what it is about to do. Its owner answers for it and may not approve what "
            "it asks. Make a key for it next."
        ),
        press="Add the agent",
        list=f"{reverse('agents')}?tenant={slug}",
        what="agents",
    )
    return ask_to_add(request, adding, form, add, section=SECTION)


@changes_charge
def press_agent(request: Request, slug: str, agent_id: int, kind: str) -> HttpResponse:
    """Give it away, switch it, or make a key."""
    if kind not in FORMS:
        raise Http404
    found = agent_page(request.user, slug, agent_id)
    form = FORMS[kind](found, request.POST or None)

    def work() -> NewKey | None:
        return PRESSES[kind](request.user, found, form.cleaned_data)

    return _pressed(request, found, Pressing(kind, form), work)


@changes_charge
def press_key(request: Request, slug: str, agent_id: int, key_id: str, kind: str) -> HttpResponse:
    """Rotate a key, or revoke it."""
    found = agent_page(request.user, slug, agent_id)
    if found.key(key_id) is None or kind not in KEY_FORMS:
        raise Http404
    form = KEY_FORMS[kind](found, request.POST or None)

    def work() -> NewKey | None:
        return KEY_PRESSES[kind](request.user, found, key_id, form.cleaned_data)

    return _pressed(request, found, Pressing(kind, form, key_id), work)


def _pressed(
    request: Request, found: AgentPage, pressing: Pressing, work: Callable[[], NewKey | None]
) -> HttpResponse:
    """GET opens the form; POST has it done. A new key stands in the answer: a redirect could not show it."""
    if request.method != "POST":
        return _ask(request, found, pressing)
    require_administrator(found.charge.tenant, found.charge.rights)
    if not pressing.form.is_valid():
        return _ask(request, found, pressing, status=422)
    slug, agent_id = found.charge.tenant.slug, found.row.agent_id
    try:
        made = work()
    except AgentRefused as refused:
        return _refused(request, agent_page(request.user, slug, agent_id), pressing, refused)
    if made is None:
        return go_to(request, f"{_address(slug, agent_id)}#changes")
    now = agent_page(request.user, slug, agent_id)
    return page(request, TEMPLATE, {**_context(now), "once": _key_shown_once(made)})


def _key_shown_once(made: NewKey) -> ShownOnce:
    return ShownOnce(
        heading="The new key, shown this once",
        what="key",
        text=made.text,
        says=(
            "Give it to the agent now, as LEDGER_API_KEY: only its hash is stored and nobody can show it "
            "again."
        ),
    )


def _refused(request: Request, now: AgentPage, pressing: Pressing, refused: AgentRefused) -> HttpResponse:
    """What was typed wrong is said where it was typed; what changed meanwhile, above the form."""
    if refused.field:
        pressing.form.add_error(refused.field, str(refused))
        return _ask(request, now, pressing, status=422)
    context = {**_context(now), "asked_key": pressing.key_id}
    return ask_again(request, TEMPLATE, context, pressing.asked_on(now), str(refused))


def _ask(request: Request, found: AgentPage, pressing: Pressing, *, status: int = 200) -> HttpResponse:
    context = {**_context(found), "asked_key": pressing.key_id}
    return ask(request, TEMPLATE, context, pressing.asked_on(found), status=status)


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


def _give_form(found: AgentPage, typed: Any) -> forms.Form:
    owners = tuple(name for name in possible_owners(found.charge.tenant) if name != found.row.owner)
    return OwnerForm(typed, owners=owners)


FORMS: Mapping[str, Callable[[AgentPage, Any], forms.Form]] = {
    "give": _give_form,
    "new-key": lambda found, typed: NewKeyForm(typed, initial={"newest": found.newest, "scopes": "tool:*"}),
    "switch-off": lambda _, typed: DecisionForm(typed),
    "switch-on": lambda _, typed: DecisionForm(typed),
}
KEY_FORMS: Mapping[str, Callable[[AgentPage, Any], forms.Form]] = {
    "rotate": lambda found, typed: RotateKeyForm(typed, initial={"newest": found.newest}),
    "revoke": lambda _, typed: DecisionForm(typed),
}


def _where(found: AgentPage) -> tuple[str, int]:
    return found.charge.tenant.slug, found.row.agent_id


def _press_new_key(user: User, found: AgentPage, typed: dict[str, Any]) -> NewKey:
    grant = Grant(typed["scopes"], typed["verbs"], typed["days"])
    return agents.create_key(user, *_where(found), grant=grant, newest=typed["newest"], why=typed["why"])


def _press_rotate(user: User, found: AgentPage, key_id: str, typed: dict[str, Any]) -> NewKey:
    return agents.rotate_key(
        user,
        *_where(found),
        key_id,
        days=typed["days"],
        overlap=timedelta(hours=typed["overlap_h"]),
        newest=typed["newest"],
        why=typed["why"],
    )


PRESSES: Mapping[str, Callable[[User, AgentPage, dict[str, Any]], NewKey | None]] = {
    "give": lambda user, found, typed: agents.give(
        user, *_where(found), owner=typed["owner"], why=typed["why"]
    ),
    "new-key": _press_new_key,
    "switch-off": lambda user, found, typed: agents.switch(user, *_where(found), on=False, why=typed["why"]),
    "switch-on": lambda user, found, typed: agents.switch(user, *_where(found), on=True, why=typed["why"]),
}
KEY_PRESSES: Mapping[str, Callable[[User, AgentPage, str, dict[str, Any]], NewKey | None]] = {
    "rotate": _press_rotate,
    "revoke": lambda user, found, key_id, typed: agents.revoke_key(
        user, *_where(found), key_id, why=typed["why"]
    ),
}
