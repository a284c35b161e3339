"""What happens next by itself, when, and what it leads to if nobody acts."""

from __future__ import annotations

from datetime import datetime

from ledger.models import Approval, Attempt, ReviewItem
from ledger.rules.policy import Rule
from ledger.rules.states import State
from ledger.rules.vocabulary import RECEIPT_IS_ONLY_EVIDENCE, ReviewReason
from review.queries.values import NextStep

CLOSED = NextStep("Nothing: this question is closed", None, "Nothing happens.")


def next_step(
    item: ReviewItem,
    rule: Rule | None,
    approval: Approval | None,
    now: datetime,
    *,
    sends_by: Rule | None = None,
) -> NextStep:
    """The next automatic step about one item. `approval`: the one that waits to be used, if any. `sends_by`:
    the rule of its next send, where that is known to be another one."""
    attempt = item.attempt
    if approval is not None:
        return _approved(approval, sends_by or rule, now)
    if item.closed_at is not None:
        return CLOSED
    if attempt.state == State.UNKNOWN:
        return _looking_up(attempt, rule)
    if attempt.is_held:
        return _held(item, attempt, now)
    return _for_a_person(item, attempt, now)


def _approved(approval: Approval, rule: Rule | None, now: datetime) -> NextStep:
    if approval.expires_at <= now:
        return NextStep(
            "The approval has expired", approval.expires_at, "The question comes back; nothing is sent."
        )
    by_ledger = rule is not None and rule.executor == "ledger"
    return NextStep(
        "The ledger itself asks for leave and sends it, until the approval expires"
        if by_ledger
        else "The agent may ask for leave until the approval expires",
        approval.expires_at,
        "The approval expires unused and the question comes back; nothing is sent.",
    )


def _looking_up(attempt: Attempt, rule: Rule | None) -> NextStep:
    if rule is not None and attempt.lookup_failures:
        what = f"Look-up again; the provider did not answer {attempt.lookup_failures} times in a row"
    else:
        what = "Look-up at the provider"
    most = rule.max_checks if rule is not None else 0
    return NextStep(
        what,
        attempt.next_check_at,
        f"Found, it is settled; not found, the rule decides; after {most} answers that decide nothing "
        "a person is asked. Nothing is sent before that.",
    )


def _held(item: ReviewItem, attempt: Attempt, now: datetime) -> NextStep:
    if attempt.expires_at is not None and attempt.expires_at > now:
        return NextStep(
            "The intent expires", attempt.expires_at, "It can no longer be approved; nothing is sent."
        )
    return _waits(item, now, "Nothing is sent; it stays here.")


def _for_a_person(item: ReviewItem, attempt: Attempt, now: datetime) -> NextStep:
    if ReviewReason(item.reason) in RECEIPT_IS_ONLY_EVIDENCE or attempt.is_final:
        return _waits(item, now, "Nothing changes until a person decides.")
    return _waits(
        item, now, "Nothing is sent. Only a late receipt or a record found at the provider settles it."
    )


def _waits(item: ReviewItem, now: datetime, if_nobody_acts: str) -> NextStep:
    """No step at all: only the time it is due at."""
    overdue = "was due" if item.due_at <= now else "overdue"
    return NextStep(f"None: waits for a person; {overdue}", item.due_at, if_nobody_acts)
