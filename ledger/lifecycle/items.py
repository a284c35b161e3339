"""Review items: opened, re-worded and closed with the attempt they ask about, in the same transaction."""

from __future__ import annotations

from datetime import timedelta

from ledger.authority import key_window_of
from ledger.lifecycle.case import Case
from ledger.models import Attempt, ReviewGroup, ReviewItem
from ledger.policies import rule_of
from ledger.rules.states import OPEN_QUESTION
from ledger.rules.vocabulary import EventKind, ReviewReason


def follow_move(case: Case, attempt: Attempt, reason: ReviewReason | None) -> None:
    """Open the item of an attempt that now is an open question, change its reason, or close it."""
    if attempt.state in OPEN_QUESTION:
        if reason is None:
            raise AssertionError(f"{attempt.pk} became {attempt.state} without a reason")
        open_or_change(case, attempt, reason)
    else:
        close(case, attempt, how=attempt.state)


def open_or_change(case: Case, attempt: Attempt, reason: ReviewReason) -> ReviewItem:
    """The attempt's one open item, with this reason from now on."""
    item = case.items.get(attempt.pk)
    if item is None:
        item = case.items[attempt.pk] = _open(case, attempt, reason)
    elif item.reason != reason:
        case.record(EventKind.REASON_CHANGED, attempt, item=item.pk, before=item.reason, reason=reason)
        item.reason = reason
        item.save(update_fields=["reason"])
    return item


def close(case: Case, attempt: Attempt, *, how: str) -> None:
    """Close the attempt's item, if one is open."""
    item = case.items.pop(attempt.pk, None)
    if item is not None:
        item.closed_at, item.closed_how = case.now, how
        item.save(update_fields=["closed_at", "closed_how"])


def _open(case: Case, attempt: Attempt, reason: ReviewReason) -> ReviewItem:
    return ReviewItem.objects.create(
        tenant_id=attempt.tenant_id,
        operation=case.operation,
        attempt=attempt,
        reason=reason,
        opened_at=case.now,
        due_at=case.now + timedelta(seconds=rule_of(attempt).review_sla_s),
        escalate_at=key_window_of(attempt, rule_of(attempt), case.now).closes_from,
        escalated_for="",
        owner_group=ReviewGroup.objects.get(tenant_id=attempt.tenant_id, is_first_owner=True),
    )
