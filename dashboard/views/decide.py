"""Presses on an item: GET opens a decision's form, POST decides. Nothing is ever decided by GET."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from dashboard import refusals
from dashboard.access import requires
from dashboard.comparison import Line, changed_lines
from dashboard.decisions import ASKS, form_for
from dashboard.forms import DecisionForm
from dashboard.http import Request, SeeOther, go_to, page, page_or_part
from dashboard.reauthentication import ask_again, check_press, renewed
from dashboard.views.item import TEMPLATE, Asked, action_of, item_address, item_context
from ledger.rules.vocabulary import DecisionKind
from review.answers import DecisionRefused
from review.corrections import compare_arguments
from review.decisions import ArgumentsUnreadable
from review.door import NotPermitted
from review.ownership import BadAddress, UnknownAssignee
from review.queries import ItemPage, item_page
from review.queries.candidates import relink_candidates
from review.queries.page import ActionView

RECORD = "record"
FIELD_OF: Mapping[type[ValueError], str] = {
    ArgumentsUnreadable: "typed",
    UnknownAssignee: "to",
    BadAddress: "url",
}
"""What was typed and cannot be, and in which field."""


@requires("decide")
@require_http_methods(["GET", "HEAD", "POST"])
def decide(request: Request, item_id: str, kind: DecisionKind) -> HttpResponse:
    found = item_page(request.user, item_id)
    action = action_of(found, kind)
    if request.method == "POST":
        return _press(request, found, kind, action)
    if action is None or ASKS[kind].at_once:
        return SeeOther(item_address(request, item_id))
    form = ask_again(request, found, kind, form_for(found, kind))
    return _show(request, found, Asked(action, ASKS[kind], form))


def _press(request: Request, found: ItemPage, kind: DecisionKind, action: ActionView | None) -> HttpResponse:
    """Read the form, then call `review`, which asks rights and facts anew whatever this page showed."""
    if kind not in ASKS or (action is None and found.closing is not None):
        return _too_late(request, found, "This item is closed: nothing is left to decide about it.")
    form = ask_again(request, found, kind, form_for(found, kind, request.POST))
    if not ASKS[kind].at_once and not form.is_valid():
        return _incomplete(request, found, action, _with_press(request, found, kind, form))
    try:
        if kind is DecisionKind.APPROVE and not check_press(request, found, form):
            return _incomplete(request, found, action, _with_press(request, found, kind, form))
        return _decide(request, found, kind, form)
    except NotPermitted as refusal:
        return _not_permitted(request, found, refusal)
    except DecisionRefused as refusal:
        return _lost(request, kind, found.item_id, refusal)
    except tuple(FIELD_OF) as error:
        form.add_error(FIELD_OF[type(error)], str(error))
        return _incomplete(request, found, action, form)


def _decide(request: Request, found: ItemPage, kind: DecisionKind, form: DecisionForm) -> HttpResponse:
    ask, action = ASKS[kind], action_of(found, kind)
    if kind is DecisionKind.RELINK_ARGUMENTS and request.POST.get("step") != RECORD and action is not None:
        changes = compare_arguments(request.user, found.item_id, typed=form.cleaned_data["typed"])
        return _show(request, found, Asked(action, ask, form, compared=True, changes=changes))
    decided = ask.press(request.user, found.item_id, {} if ask.at_once else form.cleaned_data)
    return go_to(
        request, item_address(request, found.item_id, answer=str(decided.event.sequence)) + "#answer"
    )


def _incomplete(
    request: Request, found: ItemPage, action: ActionView | None, form: DecisionForm
) -> HttpResponse:
    """Something is missing in the form; who may not decide at all learns that instead."""
    if action is None or not (found.rights.decide or found.rights.administer):
        reason = " ".join(action.why_disabled) if action else "This decision is not offered for this item."
        return _not_permitted(request, found, NotPermitted(reason, granted_by=()))
    return _show(request, found, Asked(action, ASKS[action.kind], form), status=422)


def _lost(request: Request, kind: DecisionKind, item_id: str, refusal: DecisionRefused) -> HttpResponse:
    """The facts say no, or somebody was first: the item as it is now, who did what, and what was typed."""
    now = item_page(request.user, item_id)
    action = action_of(now, kind)
    if action is None:
        return _too_late(request, now, refusal.message)
    asked = Asked(
        action=action,
        ask=ASKS[kind],
        form=_retyped(request, now, kind),
        refusal=refusal.message,
        reasons=refusal.reasons,
        meaning_lines=_meaning_changes(request, now, kind),
        last_decision=now.decisions[0] if now.decisions else None,
    )
    return _show(request, now, asked, status=409)


def _retyped(request: Request, now: ItemPage, kind: DecisionKind) -> DecisionForm:
    """The form as typed, but bound to what is shown now: pressing again decides about that."""
    typed = request.POST.copy()
    if now.ballot is not None:
        typed["shown_digest"], typed["shown_meaning"] = now.ballot.digest, now.ballot.meaning
    return ask_again(request, now, kind, form_for(now, kind, renewed(request, now, kind, typed)))


def _with_press(request: Request, found: ItemPage, kind: DecisionKind, form: DecisionForm) -> DecisionForm:
    """The form with what was typed and what is wrong with it, and with a new press where one is asked."""
    if "press" in form.fields:
        form.data = renewed(request, found, kind, request.POST.copy())
    return form


def _meaning_changes(request: Request, now: ItemPage, kind: DecisionKind) -> tuple[Line, ...]:
    if kind is not DecisionKind.APPROVE or now.ballot is None:
        return ()
    return changed_lines(request.POST.get("shown_meaning", ""), now.ballot.meaning)


def _show(request: Request, found: ItemPage, asked: Asked, *, status: int = 200) -> HttpResponse:
    if asked.action.kind is DecisionKind.RELINK_OPERATION:
        asked = replace(asked, candidates=relink_candidates(request.user, found.item_id))
    return page_or_part(request, TEMPLATE, "decision", item_context(request, found, asked), status=status)


def _too_late(request: Request, found: ItemPage, message: str) -> HttpResponse:
    context = {
        "refusal": message,
        "last_decision": found.decisions[0] if found.decisions else None,
        "closing": found.closing,
        "as_of": found.as_of,
        "typed": _typed(request),
        "back": item_address(request, found.item_id),
        "section": "review",
    }
    return page(request, "409.html", context, status=409)


def _not_permitted(request: Request, found: ItemPage, refusal: NotPermitted) -> HttpResponse:
    back = item_address(request, found.item_id)
    return refusals.not_permitted(request, refusal, back=back, section="review", typed=_typed(request))


def _typed(request: HttpRequest) -> str:
    return request.POST.get("why", "")
