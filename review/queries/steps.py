"""The facts of an item's next automatic step, from rows already read."""

from __future__ import annotations

from datetime import datetime

from ledger.authority import key_window_of
from ledger.models import Approval, ReviewItem
from ledger.rules.next_step import NextStep, StepFacts
from ledger.rules.next_step import next_step as step_of
from ledger.rules.policy import Rule
from ledger.rules.states import State
from ledger.rules.vocabulary import RECEIPT_IS_ONLY_EVIDENCE, Effect, ReviewReason

NO_RULE = Rule(effect=Effect.WRITE)


def next_step(
    item: ReviewItem,
    rule: Rule | None,
    approval: Approval | None,
    now: datetime,
    *,
    sends_by: Rule | None = None,
    ever_held: bool = False,
) -> NextStep:
    """The next automatic step about one item. `approval`: the one that waits to be used, if any. `sends_by`:
    the rule of its next send, where that is known to be another one. `ever_held`: it or what it descends from
    is known to have been. No query where the item's operation and attempt are loaded."""
    attempt, own = item.attempt, rule or NO_RULE
    return step_of(
        StepFacts(
            now=now,
            state=State(attempt.state),
            held=attempt.is_held,
            closed=item.closed_at is not None,
            due_at=item.due_at,
            key_window=key_window_of(attempt, own, now),
            may_be_sent_again=attempt.closed_to_sending_at is None and item.operation.cancelled_at is None,
            ever_held=ever_held,
            evidence_only=ReviewReason(item.reason) in RECEIPT_IS_ONLY_EVIDENCE,
            approval_until=approval.expires_at if approval else None,
            ledger_sends=(sends_by or own).executor == "ledger",
            expires_at=attempt.expires_at,
            snoozed_until=item.snoozed_until,
            next_check_at=attempt.next_check_at,
            asked_until=attempt.lookup_lease_until,
            unanswered=attempt.lookup_failures,
            max_checks=own.max_checks,
        )
    )
