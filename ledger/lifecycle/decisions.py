"""What a person decides about a review item, beside approving and relinking."""

from __future__ import annotations

from ledger.lifecycle.case import Case
from ledger.lifecycle.deciding import Desk, at_the_desk, check_reference, evidence_of, refuse_unless
from ledger.lifecycle.moves import look_again, void_all_approvals, void_approval
from ledger.lifecycle.possible import check_nothing_found, check_possible
from ledger.lifecycle.settled_by import (
    close_conflict,
    confirm,
    fail,
    is_same_effect,
    open_conflict,
    supersede,
    to_review,
)
from ledger.lifecycle.statements import Evidence, weigh
from ledger.lifecycle.values import Decided
from ledger.models import Attempt, Statement, User
from ledger.rules.statements import Says, Verdict
from ledger.rules.states import State
from ledger.rules.vocabulary import (
    WHETHER_TO_SEND,
    ConfirmedBy,
    DecisionKind,
    EventKind,
    FailedBy,
    ReviewReason,
)

_SAID = {"happened": Says.HAPPENED, "did_not": Says.DID_NOT}
_CONFLICT = {
    "happened": DecisionKind.CONFLICT_HAPPENED,
    "duplicate": DecisionKind.CONFLICT_DUPLICATE,
    "stands": DecisionKind.CONFLICT_STANDS,
}


def reject(
    *,
    item_id: str,
    by: User,
    why: str,
    what: str | None = None,
    reference: str = "",
    look_up_id: int | None = None,
) -> Decided:
    """Close the attempt to sending for ever.

    Never sent: FAILED `rejected`, also where an approval waits for its agent. Sent: the person also says
    `happened`, `did_not` (a statement, with what it rests on), or `not_known`, which leaves it in
    MANUAL_REVIEW. A reject ends the round of votes.
    """
    with at_the_desk(item_id, by) as desk:
        case, attempt = desk.case, desk.attempt
        check_possible(desk, DecisionKind.REJECT)
        _check_what(case, attempt, what)
        evidence = evidence_of(desk, why, reference, look_up_id)
        void_approval(case, attempt, "rejected")
        if attempt.was_sent and what in _SAID:
            return _close_and_state(desk, DecisionKind.REJECT, _SAID[what], why, evidence)
        decided = desk.record(DecisionKind.REJECT, why, what=what, reference=reference)
        if attempt.was_sent:
            _close_to_sending(case, attempt)
            _ask_whether_it_happened(case, attempt)
        else:
            fail(case, attempt, by=FailedBy.OPERATOR, failure="rejected")
        return decided


def confirm_happened(
    *, item_id: str, by: User, why: str, reference: str = "", look_up_id: int | None = None
) -> Decided:
    """It happened, on this person's evidence: OUTCOME_CONFIRMED, of a dangerous effect once a second person
    agrees. Raises `DecisionRefused`, also where the word rests on nothing."""
    with at_the_desk(item_id, by) as desk:
        check_possible(desk, DecisionKind.CONFIRM_HAPPENED)
        evidence = evidence_of(desk, why, reference, look_up_id)
        return state(desk, DecisionKind.CONFIRM_HAPPENED, Says.HAPPENED, why, evidence)


def confirm_did_not_happen(
    *, item_id: str, by: User, why: str, reference: str = "", look_up_id: int | None = None
) -> Decided:
    """It did not happen, on this person's word: FAILED, of a dangerous effect once a second person agrees.
    Whoever wants it sent again approves instead."""
    with at_the_desk(item_id, by) as desk:
        check_possible(desk, DecisionKind.CONFIRM_DID_NOT)
        evidence = evidence_of(desk, why, reference, look_up_id)
        return state(desk, DecisionKind.CONFIRM_DID_NOT, Says.DID_NOT, why, evidence)


def recheck(*, item_id: str, by: User, why: str) -> Decided:
    """One more look-up, at once."""
    with at_the_desk(item_id, by) as desk:
        check_possible(desk, DecisionKind.RECHECK)
        decided = desk.record(DecisionKind.RECHECK, why)
        look_again(desk.case, desk.attempt)
        return decided


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


def _check_what(case: Case, attempt: Attempt, what: str | None) -> None:
    if not attempt.was_sent:
        return
    refuse_unless(
        what in ("happened", "did_not", "not_known"),
        "answer-required",
        "It was sent: say whether it happened, did not, or is not known.",
    )
    found = check_nothing_found(case, attempt) if what == "did_not" else None
    if found is not None:
        raise found


def state(desk: Desk, kind: DecisionKind, says: Says, why: str, evidence: Evidence) -> Decided:
    """Record what a person says became of it. Enough people who say so settle it; until then it is shown and
    settles nothing, and people who contradict each other make it a conflict."""
    case, attempt = desk.case, desk.attempt
    found = weigh(case, attempt, desk.by, says, evidence.reference)
    event = EventKind.STATED if found.settles is None else EventKind.DECIDED
    look_up = evidence.look_up.pk if evidence.look_up else None
    said = {"says": says, "reference": evidence.reference, "look_up": look_up}
    decided = desk.record(kind, why, event=event, **said)
    Statement.objects.create(
        tenant_id=attempt.tenant_id,
        decision=decided.decision,
        attempt=attempt,
        by=desk.by,
        says=says,
        reference=evidence.reference,
        look_up=evidence.look_up,
        at=case.now,
    )
    _follow(desk, kind, says, found)
    return decided


def _follow(desk: Desk, kind: DecisionKind, says: Says, found: Verdict) -> None:
    case, attempt = desk.case, desk.attempt
    if found.settles is Says.HAPPENED:
        _confirm_by_person(case, attempt, found.reference)
    elif found.settles is Says.DID_NOT:
        closed = kind is DecisionKind.REJECT or attempt.closed_to_sending_at is not None
        fail(case, attempt, by=FailedBy.OPERATOR, failure="rejected" if closed else "did_not_happen")
    else:
        if says is Says.HAPPENED:
            void_all_approvals(case, "a person says it happened")
            case.change(attempt, positive_evidence=True)
        if found.contradict:
            to_review(case, attempt, ReviewReason.CONFLICTING_EVIDENCE)


def _close_and_state(desk: Desk, kind: DecisionKind, says: Says, why: str, evidence: Evidence) -> Decided:
    _close_to_sending(desk.case, desk.attempt)
    decided = state(desk, kind, says, why, evidence)
    _ask_whether_it_happened(desk.case, desk.attempt)
    return decided


def _close_to_sending(case: Case, attempt: Attempt) -> None:
    if attempt.closed_to_sending_at is None:
        case.change(attempt, closed_to_sending_at=case.now)


def _ask_whether_it_happened(case: Case, attempt: Attempt) -> None:
    """Where whether to send was the question, or was still to be: that is answered."""
    asked = attempt.state == State.MANUAL_REVIEW and attempt.reason in WHETHER_TO_SEND
    if asked or attempt.state == State.UNKNOWN:
        to_review(case, attempt, ReviewReason.UNRESOLVED)


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
