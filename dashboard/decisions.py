"""How each decision is asked for and pressed: its form, its key, and the function of `review` it calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.forms import (
    ApproveForm,
    ArgumentsForm,
    AssignForm,
    DecisionForm,
    EvidenceForm,
    NoteForm,
    OperationForm,
    ReferenceForm,
    RejectForm,
    RejectSentForm,
)
from dashboard.ownership_forms import HandOverForm, SnoozeForm, WaitOnForm
from ledger.models import User
from ledger.rules.vocabulary import DecisionKind
from review import decisions, ownership
from review.answers import Decided
from review.queries import ItemPage

K = DecisionKind
Typed = Mapping[str, Any]
Press = Callable[[User, str, Typed], Decided]


@dataclass(frozen=True)
class Ask:
    """One decision as the page asks for it. `weight`: main, grave or plain; `key` presses its button."""

    press: Press
    form: type[DecisionForm] = DecisionForm
    key: str = ""
    weight: str = "plain"
    at_once: bool = False  # one press, no reason: it decides nothing and can be taken back


def _conflict(answer: str) -> Press:
    return lambda user, item_id, typed: decisions.decide_conflict(
        user, item_id, why=typed["why"], answer=answer, reference=typed.get("reference", "")
    )


def _approve(user: User, item_id: str, typed: Typed) -> Decided:
    return decisions.approve(
        user,
        item_id,
        why=typed["why"],
        new_provider_key=typed.get("new_provider_key", False),
        shown_digest=typed["shown_digest"],
    )


def _reject(user: User, item_id: str, typed: Typed) -> Decided:
    return decisions.reject(
        user,
        item_id,
        why=typed["why"],
        what=typed.get("what"),
        reference=typed.get("reference", ""),
        look_up_id=typed.get("look_up"),
    )


def _state(say: Callable[..., Decided]) -> Press:
    return lambda user, item_id, typed: say(
        user, item_id, why=typed["why"], reference=typed["reference"], look_up_id=typed.get("look_up")
    )


ASKS: Mapping[DecisionKind, Ask] = {
    K.APPROVE: Ask(_approve, ApproveForm, "a", "main"),
    K.REJECT: Ask(_reject, RejectForm, "d", "grave"),
    K.CONFIRM_HAPPENED: Ask(_state(decisions.confirm_happened), EvidenceForm, "h", "main"),
    K.CONFIRM_DID_NOT: Ask(_state(decisions.confirm_did_not_happen), EvidenceForm, "n", "grave"),
    K.RECHECK: Ask(
        lambda user, item_id, typed: decisions.recheck(user, item_id, why=typed["why"]),
        key="p",
        weight="main",
    ),
    K.RELINK_ARGUMENTS: Ask(
        lambda user, item_id, typed: decisions.relink_arguments(
            user, item_id, why=typed["why"], typed=typed["typed"]
        ),
        ArgumentsForm,
        "l",
        "main",
    ),
    K.RELINK_RECORD: Ask(
        lambda user, item_id, typed: decisions.relink_record(
            user, item_id, why=typed["why"], reference=typed["reference"]
        ),
        ReferenceForm,
        weight="main",
    ),
    K.RELINK_OPERATION: Ask(
        lambda user, item_id, typed: decisions.relink_operation(
            user, item_id, why=typed["why"], target_key=typed["target_key"], new=typed["new"]
        ),
        OperationForm,
        weight="grave",
    ),
    K.INTENDED_REPEAT: Ask(
        lambda user, item_id, typed: decisions.intended_repeat(user, item_id, why=typed["why"]),
        weight="main",
    ),
    K.CONFLICT_HAPPENED: Ask(_conflict("happened"), ReferenceForm, weight="main"),
    K.CONFLICT_DUPLICATE: Ask(_conflict("duplicate"), weight="grave"),
    K.CONFLICT_STANDS: Ask(_conflict("stands"), weight="main"),
    K.CLAIM: Ask(lambda user, item_id, _typed: ownership.claim(user, item_id), key="c", at_once=True),
    K.RELEASE: Ask(lambda user, item_id, _typed: ownership.release(user, item_id), at_once=True),
    K.TAKE_OVER: Ask(
        lambda user, item_id, typed: ownership.take_over(user, item_id, why=typed["why"]), weight="grave"
    ),
    K.ASSIGN: Ask(
        lambda user, item_id, typed: ownership.assign(user, item_id, to=typed["to"], why=typed["why"]),
        AssignForm,
        "i",
        "main",
    ),
    K.HAND_OVER: Ask(
        lambda user, item_id, typed: ownership.hand_over(user, item_id, to=typed["to"], why=typed["why"]),
        HandOverForm,
        weight="main",
    ),
    K.SNOOZE: Ask(
        lambda user, item_id, typed: ownership.snooze(user, item_id, until=typed["end"], why=typed["why"]),
        SnoozeForm,
        "z",
        "main",
    ),
    K.WAKE: Ask(lambda user, item_id, _typed: ownership.wake(user, item_id), at_once=True),
    K.WAIT_ON: Ask(
        lambda user, item_id, typed: ownership.wait_on(
            user, item_id, what=typed["what"], url=typed["url"], why=typed["why"]
        ),
        WaitOnForm,
        weight="main",
    ),
    K.NOTE: Ask(
        lambda user, item_id, typed: ownership.note(user, item_id, why=typed["why"]), NoteForm, weight="main"
    ),
}


def form_for(page: ItemPage, kind: DecisionKind, typed: Typed | None = None) -> DecisionForm:
    """The form of this decision about this item, empty or as typed."""
    ask = ASKS[kind]
    if kind in (K.ASSIGN, K.HAND_OVER):
        named = page.assignees if kind is K.ASSIGN else page.colleagues
        people = tuple((assignee.value, assignee.label) for assignee in named)
        return (AssignForm if kind is K.ASSIGN else HandOverForm)(typed, assignees=people)
    if kind in _STATING and (was_sent(page) or kind is not K.REJECT):
        stating = RejectSentForm if kind is K.REJECT else EvidenceForm
        return stating(typed, look_ups=_look_ups(page))
    form = ask.form(typed, initial=_initial(page))
    if kind is K.RELINK_OPERATION and was_sent(page):
        form.fields["new"].disabled = True
    if kind is K.APPROVE:
        _offer_new_key(form, page)
    return form


def _offer_new_key(form: DecisionForm, page: ItemPage) -> None:
    if not (was_sent(page) and page.provider_keeps_keys):
        del form.fields["new_provider_key"]  # nothing was sent yet, or the provider honours no key
    elif page.votes.open:
        field, given = form.fields["new_provider_key"], len(page.votes.open)
        chosen, other = ("with", "without") if page.votes.for_new_key else ("without", "with")
        them = "that" if given == 1 else "them"
        said = f"{given} so far, {chosen} a new provider key: a yes {other} it takes {them} back."
        field.help_text = f"{field.help_text} {said}"


_STATING = (K.CONFIRM_HAPPENED, K.CONFIRM_DID_NOT, K.REJECT)


def _look_ups(page: ItemPage) -> tuple[tuple[str, str], ...]:
    """The newest look-ups of the attempt, to be attached as evidence."""
    return tuple(
        (str(one.id), f"{one.at:%Y-%m-%d %H:%M:%S} UTC: {one.words}") for one in page.evidence.lookups
    )


def was_sent(page: ItemPage) -> bool:
    return any(link.sent for link in page.chain if link.is_this)


def _initial(page: ItemPage) -> dict[str, Any]:
    ballot = page.ballot
    return {
        "typed": "" if page.arguments.masked else page.arguments.text,
        "shown_digest": ballot.digest if ballot else "",
        "shown_meaning": ballot.meaning if ballot else "",
        **({"what": page.waits_on.what, "url": page.waits_on.url} if page.waits_on else {}),
    }
