"""What a person decides about a review item, beside approving and relinking."""

from __future__ import annotations

from ledger.faults import fault_point
from ledger.lifecycle.case import Case
from ledger.lifecycle.deciding import (
    at_the_desk,
    check_open,
    check_reference,
    refuse_unless,
)
from ledger.lifecycle.moves import move, void_all_approvals, void_approval
from ledger.lifecycle.settled_by import close_conflict, confirm, fail, is_same_effect, open_conflict
from ledger.lifecycle.values import Decided
from ledger.models import Attempt, User
from ledger.rules.states import FINAL, OPEN_QUESTION, State
from ledger.rules.vocabulary import ConfirmedBy, DecisionKind, EventKind, FailedBy, ReviewReason


def reject(*, item_id: str, by: User, why: str, what: str | None = None, reference: str = "") -> Decided:
    """Close the attempt to sending for ever.

    Never sent: FAILED `rejected`. Sent: the person also says `happened` (with the provider's reference),
    `did_not`, or `not_known`, which leaves it in MANUAL_REVIEW. A reject ends the round of votes.
    """
    with at_the_desk(item_id, by) as desk:
        case, attempt = desk.case, desk.attempt
        check_open(desk)
        refuse_unless(attempt.state in OPEN_QUESTION, "not-offered", "Only an open question can be rejected.")
        _check_what(attempt, what, reference)
        decided = desk.record(DecisionKind.REJECT, why, what=what, reference=reference)
        void_approval(case, attempt, "rejected")
        if not attempt.was_sent:
            fail(case, attempt, by=FailedBy.OPERATOR, failure="rejected")
        else:
            _close_to_sending(case, attempt, what or "", reference)
        fault_point("decision.before_commit")
        return decided


def confirm_happened(*, item_id: str, by: User, why: str, reference: str) -> Decided:
    """It happened, on this person's evidence: OUTCOME_CONFIRMED."""
    with at_the_desk(item_id, by) as desk:
        check_open(desk)
        _check_sent_question(desk.attempt)
        check_reference(reference)
        decided = desk.record(DecisionKind.CONFIRM_HAPPENED, why, reference=reference)
        _confirm_by_person(desk.case, desk.attempt, reference)
        return decided


def confirm_did_not_happen(*, item_id: str, by: User, why: str) -> Decided:
    """It did not happen, on this person's word: FAILED. Whoever wants it sent again approves instead."""
    with at_the_desk(item_id, by) as desk:
        check_open(desk)
        _check_sent_question(desk.attempt)
        decided = desk.record(DecisionKind.CONFIRM_DID_NOT, why)
        fail(desk.case, desk.attempt, by=FailedBy.OPERATOR, failure="did_not_happen")
        return decided


def recheck(*, item_id: str, by: User, why: str) -> Decided:
    """One more look-up, at once."""
    with at_the_desk(item_id, by) as desk:
        check_open(desk)
        _check_sent_question(desk.attempt)
        decided = desk.record(DecisionKind.RECHECK, why)
        look_again(desk.case, desk.attempt)
        return decided


def look_again(case: Case, attempt: Attempt) -> None:
    """Make a look-up due now; what only a person might have decided is UNKNOWN again."""
    live = case.live()
    refuse_unless(
        live is None or live.pk == attempt.pk,
        "other-attempt-live",
        f"Attempt {live.number if live else 0} of this operation is under way: it must be settled first.",
    )
    if attempt.state == State.MANUAL_REVIEW:
        move(case, attempt, State.UNKNOWN, reason=ReviewReason.UNKNOWN)
    else:
        case.change(attempt, next_check_at=case.now)


def decide_conflict(*, item_id: str, by: User, why: str, answer: str, reference: str = "") -> Decided:
    """Decide what contradicts itself: `happened`, `duplicate` (of the confirmed attempt's effect), or
    `stands`."""
    with at_the_desk(item_id, by) as desk:
        case, attempt = desk.case, desk.attempt
        check_open(desk)
        refuse_unless(
            desk.item.reason == ReviewReason.CONFLICTING_EVIDENCE,
            "not-offered",
            "Nothing contradicts itself here.",
        )
        kinds = {
            "happened": DecisionKind.CONFLICT_HAPPENED,
            "duplicate": DecisionKind.CONFLICT_DUPLICATE,
            "stands": DecisionKind.CONFLICT_STANDS,
        }
        refuse_unless(answer in kinds, "not-offered", "Answer happened, duplicate or stands.")
        _check_answer(case, attempt, answer, reference)
        decided = desk.record(
            kinds[answer], why, event=EventKind.CONFLICT_DECIDED, answer=answer, reference=reference
        )
        if answer == "happened":
            _confirm_by_person(case, attempt, reference)
        else:
            close_conflict(case, attempt, how="duplicate_effect" if answer == "duplicate" else "stands")
        return decided


def _check_answer(case: Case, attempt: Attempt, answer: str, reference: str) -> None:
    if answer == "happened":
        refuse_unless(case.confirmed is None, "already-done", "Another attempt is confirmed already.")
        check_reference(reference)
    if answer == "duplicate":
        other = case.confirmed is not None and case.confirmed.pk != attempt.pk
        refuse_unless(other, "not-offered", "A duplicate needs another attempt that is confirmed.")
    if answer == "stands":
        refuse_unless(attempt.state in FINAL, "not-offered", "There is no final state to keep.")


def _check_what(attempt: Attempt, what: str | None, reference: str) -> None:
    if not attempt.was_sent:
        return
    refuse_unless(
        what in ("happened", "did_not", "not_known"),
        "answer-required",
        "It was sent: say whether it happened, did not, or is not known.",
    )
    if what == "happened":
        check_reference(reference)


def _close_to_sending(case: Case, attempt: Attempt, what: str, reference: str) -> None:
    if attempt.closed_to_sending_at is None:
        case.change(attempt, closed_to_sending_at=case.now)
    if what == "happened":
        _confirm_by_person(case, attempt, reference)
    elif what == "did_not":
        fail(case, attempt, by=FailedBy.OPERATOR, failure="rejected")
    elif attempt.state == State.UNKNOWN:
        move(case, attempt, State.MANUAL_REVIEW, reason=ReviewReason.UNRESOLVED)


def _check_sent_question(attempt: Attempt) -> None:
    possible = attempt.state in OPEN_QUESTION and attempt.was_sent
    refuse_unless(possible, "not-offered", "Only what was sent and is not known can be answered so.")


def _confirm_by_person(case: Case, attempt: Attempt, reference: str) -> None:
    """A person's evidence confirms, unless another attempt is: then it is the same effect, or a conflict."""
    confirmed = case.confirmed
    if confirmed is None:
        confirm(case, attempt, by=ConfirmedBy.OPERATOR, reference=reference)
    elif is_same_effect(confirmed, {reference}):
        move(case, attempt, State.SUPERSEDED, said={"closed_as": "same_effect"})
    else:
        void_all_approvals(case, "a second effect was reported")
        open_conflict(case, attempt, evidence={"reference": reference})
