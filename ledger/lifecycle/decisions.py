"""What a person decides about a review item, beside approving and relinking."""

from __future__ import annotations

from ledger.lifecycle.case import Case
from ledger.lifecycle.deciding import (
    at_the_desk,
    check_reference,
    refuse_unless,
)
from ledger.lifecycle.moves import move, void_all_approvals, void_approval
from ledger.lifecycle.possible import check_nothing_found, check_possible
from ledger.lifecycle.settled_by import (
    close_conflict,
    confirm,
    fail,
    is_same_effect,
    open_conflict,
    supersede,
)
from ledger.lifecycle.values import Decided
from ledger.models import Attempt, User
from ledger.rules.states import State
from ledger.rules.vocabulary import ConfirmedBy, DecisionKind, EventKind, FailedBy, ReviewReason

_CONFLICT = {
    "happened": DecisionKind.CONFLICT_HAPPENED,
    "duplicate": DecisionKind.CONFLICT_DUPLICATE,
    "stands": DecisionKind.CONFLICT_STANDS,
}


def reject(*, item_id: str, by: User, why: str, what: str | None = None, reference: str = "") -> Decided:
    """Close the attempt to sending for ever.

    Never sent: FAILED `rejected`, also where an approval waits for its agent. Sent: the person also says
    `happened` (with the provider's reference), `did_not`, or `not_known`, which leaves it in MANUAL_REVIEW.
    A reject ends the round of votes.
    """
    with at_the_desk(item_id, by) as desk:
        case, attempt = desk.case, desk.attempt
        check_possible(desk, DecisionKind.REJECT)
        _check_what(case, attempt, what, reference)
        decided = desk.record(DecisionKind.REJECT, why, what=what, reference=reference)
        void_approval(case, attempt, "rejected")
        if not attempt.was_sent:
            fail(case, attempt, by=FailedBy.OPERATOR, failure="rejected")
        else:
            _close_to_sending(case, attempt, what or "", reference)
        return decided


def confirm_happened(*, item_id: str, by: User, why: str, reference: str) -> Decided:
    """It happened, on this person's evidence: OUTCOME_CONFIRMED."""
    with at_the_desk(item_id, by) as desk:
        check_possible(desk, DecisionKind.CONFIRM_HAPPENED)
        check_reference(reference)
        decided = desk.record(DecisionKind.CONFIRM_HAPPENED, why, reference=reference)
        _confirm_by_person(desk.case, desk.attempt, reference)
        return decided


def confirm_did_not_happen(*, item_id: str, by: User, why: str) -> Decided:
    """It did not happen, on this person's word: FAILED. Whoever wants it sent again approves instead."""
    with at_the_desk(item_id, by) as desk:
        check_possible(desk, DecisionKind.CONFIRM_DID_NOT)
        decided = desk.record(DecisionKind.CONFIRM_DID_NOT, why)
        fail(desk.case, desk.attempt, by=FailedBy.OPERATOR, failure="did_not_happen")
        return decided


def recheck(*, item_id: str, by: User, why: str) -> Decided:
    """One more look-up, at once."""
    with at_the_desk(item_id, by) as desk:
        check_possible(desk, DecisionKind.RECHECK)
        decided = desk.record(DecisionKind.RECHECK, why)
        look_again(desk.case, desk.attempt)
        return decided


def look_again(case: Case, attempt: Attempt) -> None:
    """Make a look-up due now; what only a person might have decided is UNKNOWN again."""
    if attempt.state == State.MANUAL_REVIEW:
        move(case, attempt, State.UNKNOWN, reason=ReviewReason.UNKNOWN)
    else:
        case.change(attempt, next_check_at=case.now)


def decide_conflict(*, item_id: str, by: User, why: str, answer: str, reference: str = "") -> Decided:
    """Decide what contradicts itself: `happened`, `duplicate` (of the confirmed attempt's effect), or
    `stands`."""
    with at_the_desk(item_id, by) as desk:
        case, attempt = desk.case, desk.attempt
        refuse_unless(
            desk.item.reason == ReviewReason.CONFLICTING_EVIDENCE,
            "not-offered",
            "Nothing contradicts itself here.",
        )
        refuse_unless(answer in _CONFLICT, "not-offered", "Answer happened, duplicate or stands.")
        check_possible(desk, _CONFLICT[answer])
        if answer == "happened":
            check_reference(reference)
        decided = desk.record(
            _CONFLICT[answer], why, event=EventKind.CONFLICT_DECIDED, answer=answer, reference=reference
        )
        if answer == "happened":
            _confirm_by_person(case, attempt, reference)
        else:
            close_conflict(case, attempt, how="duplicate_effect" if answer == "duplicate" else "stands")
        return decided


def _check_what(case: Case, attempt: Attempt, what: str | None, reference: str) -> None:
    if not attempt.was_sent:
        return
    refuse_unless(
        what in ("happened", "did_not", "not_known"),
        "answer-required",
        "It was sent: say whether it happened, did not, or is not known.",
    )
    if what == "happened":
        check_reference(reference)
    found = check_nothing_found(case, attempt) if what == "did_not" else None
    if found is not None:
        raise found


def _close_to_sending(case: Case, attempt: Attempt, what: str, reference: str) -> None:
    if attempt.closed_to_sending_at is None:
        case.change(attempt, closed_to_sending_at=case.now)
    if what == "happened":
        _confirm_by_person(case, attempt, reference)
    elif what == "did_not":
        fail(case, attempt, by=FailedBy.OPERATOR, failure="rejected")
    elif attempt.state == State.UNKNOWN:
        move(case, attempt, State.MANUAL_REVIEW, reason=ReviewReason.UNRESOLVED)


def _confirm_by_person(case: Case, attempt: Attempt, reference: str) -> None:
    """A person's evidence confirms, unless another attempt is: then it is the same effect, or a conflict."""
    confirmed = case.confirmed
    if confirmed is None:
        confirm(case, attempt, by=ConfirmedBy.OPERATOR, reference=reference)
    elif is_same_effect(confirmed, {reference}):
        supersede(case, attempt, how="same_effect")
    else:
        void_all_approvals(case, "a second effect was reported")
        open_conflict(case, attempt, evidence={"reference": reference})
