"""Which decisions the facts allow: one list of needs per decision, asked by the page and by the verb."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ledger.lifecycle.approvable import why_not_approvable
from ledger.lifecycle.case import Case
from ledger.lifecycle.deciding import Desk, already_decided
from ledger.lifecycle.freshness import last_answer
from ledger.lifecycle.values import DecisionRefused
from ledger.models import Attempt, ReviewItem
from ledger.policies import rule_in_force, rule_of
from ledger.rules.looked_up import LookedUpKind
from ledger.rules.states import FINAL, OPEN_QUESTION, State
from ledger.rules.vocabulary import DecisionKind, ReviewReason

Need = Callable[[Case, Attempt], DecisionRefused | None]


def check_possible(desk: Desk, kind: DecisionKind) -> None:
    """Raise `DecisionRefused` unless the facts allow this decision; a closed item names who closed it."""
    if is_closed_to(kind, desk.case, desk.item):
        raise already_decided(desk)
    refused = why_not(kind, desk.case, desk.attempt)
    if refused is not None:
        raise refused


def is_closed_to(kind: DecisionKind, case: Case, item: ReviewItem) -> bool:
    """Is the item closed? What waits for its agent with an approval may be approved anew or rejected there,
    unless a later question about it is open."""
    if item.closed_at is None:
        return False
    reopens = kind in (DecisionKind.APPROVE, DecisionKind.REJECT)
    waits = _waits_with_approval(case.attempt(item.attempt_id)) and item.attempt_id not in case.items
    return not (reopens and waits)


def why_not(kind: DecisionKind, case: Case, attempt: Attempt) -> DecisionRefused | None:
    """The first need that is not met; None where the decision is possible."""
    return next((refused for need in _NEEDS[kind] if (refused := need(case, attempt))), None)


def check_nothing_found(case: Case, attempt: Attempt) -> DecisionRefused | None:
    """Nobody says that it did not happen while the provider's own record of it is the last thing seen."""
    answer = last_answer(attempt)
    if answer is None or answer.answer != LookedUpKind.FOUND or answer.believed_absent:
        return None
    found = [
        record
        for record in answer.records
        if record["content"] == "same" and record["state"] in ("done", "in_progress")
    ]
    if not found:
        return None
    name, state = found[0]["reference"], found[0]["state"].replace("_", " ")
    seen_s = (case.now - answer.answered_at).total_seconds()
    return DecisionRefused(
        "found-there",
        f"The provider has {name} ({state}), seen {seen_s:.0f} s ago: re-check, or confirm that it happened.",
    )


def _waits_with_approval(attempt: Attempt) -> bool:
    return attempt.state == State.INTENT_RECORDED and attempt.held_at is not None


def _need(code: str, met: Callable[[Case, Attempt], object], message: str) -> Need:
    """A need in one line; `{state}` in the message is the attempt's."""

    def need(case: Case, attempt: Attempt) -> DecisionRefused | None:
        return None if met(case, attempt) else DecisionRefused(code, message.format(state=attempt.state))

    return need


def _no_other_live(case: Case, attempt: Attempt) -> DecisionRefused | None:
    live = case.live()
    if live is None or live.pk == attempt.pk:
        return None
    return DecisionRefused(
        "other-attempt-live",
        f"Attempt {live.number} of this operation is under way: it must be settled first.",
    )


def _no_other_held(case: Case, attempt: Attempt) -> bool:
    variant = case.held_variant()
    return variant is None or variant.pk == attempt.pk


def _another_confirmed(case: Case, attempt: Attempt) -> bool:
    return case.confirmed is not None and case.confirmed.pk != attempt.pk


_OPEN = _need(
    "not-offered",
    lambda _, attempt: attempt.state in OPEN_QUESTION,
    "The attempt is {state}: nothing is open.",
)
_REJECTABLE = _need(
    "not-offered",
    lambda _, attempt: attempt.state in OPEN_QUESTION or _waits_with_approval(attempt),
    "The attempt is {state}: there is nothing to reject.",
)
_SENT = _need(
    "not-offered", lambda _, attempt: attempt.was_sent, "Nothing was sent: there is nothing to find out."
)
_LOOK_UP = _need("no-lookup", lambda _, attempt: rule_of(attempt).has_lookup, "The tool has no look-up.")
_ARGUMENTS = _need(
    "hash-only", lambda _, attempt: attempt.args_bytes is not None, "Only the hash of its arguments is known."
)
_UNCONFIRMED = _need(
    "already-done", lambda case, _: case.confirmed is None, "An attempt is confirmed: it was done."
)
_PERMITTED = _need(
    "authority",
    lambda _, attempt: rule_in_force(attempt.tenant_id, attempt.tool).rule is not None,
    "The policy refuses this tool.",
)
_ONE_HELD = _need(
    "variant-held", _no_other_held, "Another attempt with other arguments is held: decide that one first."
)
_OTHER_CONFIRMED = _need("not-offered", _another_confirmed, "No other attempt is confirmed.")
_TWIN = _need(
    "not-offered",
    lambda _, attempt: attempt.is_held and attempt.reason == ReviewReason.SUSPECTED_DUPLICATE,
    "It is not held as a suspected duplicate.",
)
_FINAL = _need("not-offered", lambda _, attempt: attempt.state in FINAL, "There is no final state to keep.")

_NEEDS: Mapping[DecisionKind, tuple[Need, ...]] = {
    DecisionKind.APPROVE: (why_not_approvable,),
    DecisionKind.REJECT: (_REJECTABLE,),
    DecisionKind.CONFIRM_HAPPENED: (_SENT, _OPEN),
    DecisionKind.CONFIRM_DID_NOT: (_SENT, _OPEN, check_nothing_found),
    DecisionKind.RECHECK: (_LOOK_UP, _SENT, _OPEN, _no_other_live),
    DecisionKind.RELINK_ARGUMENTS: (_ARGUMENTS, _UNCONFIRMED, _PERMITTED, _ONE_HELD, _OPEN),
    DecisionKind.RELINK_RECORD: (_LOOK_UP, _SENT, _OPEN, _no_other_live),
    DecisionKind.RELINK_OPERATION: (_OPEN, _PERMITTED),
    DecisionKind.INTENDED_REPEAT: (_TWIN,),
    DecisionKind.CONFLICT_HAPPENED: (_UNCONFIRMED,),
    DecisionKind.CONFLICT_DUPLICATE: (_OTHER_CONFIRMED,),
    DecisionKind.CONFLICT_STANDS: (_FINAL,),
}
