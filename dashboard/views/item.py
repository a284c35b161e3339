"""One review item: what is known, what is asked, and what can be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import filters
from dashboard.access import requires
from dashboard.comparison import Line
from dashboard.decisions import ASKS, Ask
from dashboard.forms import DecisionForm
from dashboard.http import Request, page
from ledger.rules.vocabulary import OWNERSHIP, DecisionKind
from review.queries import BadFilter, ItemPage, QueueRow, item_page, queue
from review.queries.candidates import OperationCandidate
from review.queries.changes import head_of
from review.queries.item import item_arguments
from review.queries.page import ActionView, DecisionView, EventView, FieldChange

TEMPLATE = "dashboard/item.html"


@dataclass(frozen=True)
class Button:
    """One button with its consequence; how it is pressed and by which key."""

    action: ActionView
    ask: Ask
    id: str


@dataclass(frozen=True)
class Asked:
    """The form that stands open on the page. `refusal`: why the press before it did nothing."""

    action: ActionView
    ask: Ask
    form: DecisionForm
    refusal: str = ""
    reasons: tuple[str, ...] = ()
    compared: bool = False
    changes: tuple[FieldChange, ...] = ()  # of corrected arguments, before they are recorded
    meaning_lines: tuple[Line, ...] = ()  # what a yes means now against what was shown
    last_decision: DecisionView | None = None  # who was first
    candidates: tuple[OperationCandidate, ...] = ()  # to relink to


@dataclass(frozen=True)
class Answer:
    """What a press recorded: the decision, its event with number and hash."""

    event: EventView
    decision: DecisionView | None


@requires("view")
@require_safe
def item(request: Request, item_id: str) -> HttpResponse:
    found = item_page(request.user, item_id)
    context = item_context(request, found)
    answer = _answer(request, found)
    if answer:
        context |= {"answer": answer, "next_row": _next_row(request, found)}
    return page(request, TEMPLATE, context)


@requires("view")
@require_safe
def changed(request: Request, item_id: str) -> HttpResponse:
    """204 while the history is as long as when the page was read; else a line that offers to show it."""
    if request.GET.get("seen", "") == str(head_of(request.user, item_id)):
        return HttpResponse(status=204)
    return page(request, f"{TEMPLATE}#stale", {"address": item_address(request, item_id)})


@requires("view")
@require_safe
def whole_arguments(request: Request, item_id: str) -> HttpResponse:
    """Arguments too long for the item's page, all of them."""
    context = {
        "arguments": item_arguments(request.user, item_id),
        "address": item_address(request, item_id),
        "section": "review",
    }
    return page(request, "dashboard/arguments.html", context)


def item_context(request: Request, found: ItemPage, asked: Asked | None = None) -> dict[str, Any]:
    buttons = [
        Button(action, ASKS[action.kind], action.kind.value)
        for action in found.actions
        if action.kind in ASKS
    ]
    query = filters.kept_query(request.GET)
    return {
        "page": found,
        "as_of": found.as_of,
        "section": "review",
        "asked": asked,
        "decisions": [button for button in buttons if button.action.kind not in OWNERSHIP],
        "decidable": any(a.enabled and a.kind not in OWNERSHIP for a in found.actions),
        "ownership": [button for button in buttons if _concerns(found, button.action)],
        "query": query,
        "queue_address": reverse("queue") + query,
        "here": item_address(request, found.item_id),
        "refusals": [fact for fact in found.then_now if fact.refuses],
        "warnings": [fact for fact in found.then_now if not fact.ok and not fact.refuses],
    }


def item_address(request: Request, item_id: str, **more: str) -> str:
    """The item's page within the list the person came from."""
    return reverse("item", args=[item_id]) + filters.kept_query(request.GET, **more)


def _concerns(found: ItemPage, action: ActionView) -> bool:
    """Ownership as far as there is something to own: no Release or Take over where nobody holds a claim, no
    Hand over of what is not theirs, no Wake of what is awake."""
    needed = {
        DecisionKind.RELEASE: found.claim is not None,
        DecisionKind.TAKE_OVER: found.claim is not None,
        DecisionKind.HAND_OVER: found.owner.is_me or (found.claim is not None and found.claim.is_mine),
        DecisionKind.WAKE: found.snoozed_until is not None,
    }
    return action.kind in OWNERSHIP and needed.get(action.kind, True)


def action_of(found: ItemPage, kind: DecisionKind) -> ActionView | None:
    return next((action for action in found.actions if action.kind is kind), None)


def _answer(request: Request, found: ItemPage) -> Answer | None:
    number = request.GET.get("answer", "")
    event = next((event for event in found.events if str(event.sequence) == number), None)
    if event is None:
        return None
    mine = (decision for decision in found.decisions if decision.at == event.at)
    return Answer(event, next(mine, found.decisions[0] if found.decisions else None))


def _next_row(request: Request, found: ItemPage) -> QueueRow | None:
    """The most urgent other item of the list the person came from."""
    try:
        rows = queue(request.user, filters.read_filters(request.GET)).rows
    except BadFilter:
        return None
    return next((row for row in rows if row.item_id != found.item_id and row.closing is None), None)
