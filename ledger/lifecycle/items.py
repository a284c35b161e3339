"""Review items: opened, re-worded and closed with the attempt they ask about, in the same transaction."""

from __future__ import annotations

from datetime import timedelta

from ledger.authority import key_window_of
from ledger.lifecycle.case import Case
from ledger.models import Attempt, ReviewItem
from ledger.owners import owner_of
from ledger.policies import rule_of
from ledger.rules.ownership import Owned, Question
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
        item.reason, item.snoozed_until = reason, None  # it was the other question that could wait
        item.save(update_fields=["reason", "snoozed_until"])
        _follow_rules(case, attempt, item)
    return item


def close(case: Case, attempt: Attempt, *, how: str) -> None:
    """Close the attempt's item, if one is open."""
    item = case.items.pop(attempt.pk, None)
    if item is not None:
        item.closed_at, item.closed_how = case.now, how
        case.pen.change(item, "closed_at", "closed_how")


def own(item: ReviewItem, owned: Owned) -> dict[str, object]:
    """Make this its owner, as the rules of ownership say. Returns what history says of it."""
    item.owner_group_id, item.owner_id, item.owner_chosen = owned.team, owned.person, False
    item.save(update_fields=["owner", "owner_group", "owner_chosen"])
    return _said(item, owned)


def owner_by_rules(attempt: Attempt, reason: ReviewReason) -> Owned:
    """Whose such a question of this attempt is, as the rules of ownership say now."""
    question = Question(attempt.tool, reason, rule_of(attempt).effect)
    return owner_of(question, tenant_id=attempt.tenant_id)


def _said(item: ReviewItem, owned: Owned) -> dict[str, object]:
    person = item.owner.get_username() if item.owner else None
    rule = {} if owned.rule is None else {"rule": owned.rule + 1}
    return {"by": "rules", "owner": person, "group": item.owner_group.name, **rule}


def _open(case: Case, attempt: Attempt, reason: ReviewReason) -> ReviewItem:
    owned = owner_by_rules(attempt, reason)
    item = ReviewItem.objects.create(
        tenant_id=attempt.tenant_id,
        operation=case.operation,
        attempt=attempt,
        reason=reason,
        opened_at=case.now,
        due_at=case.now + timedelta(seconds=rule_of(attempt).review_sla_s),
        escalate_at=key_window_of(attempt, rule_of(attempt), case.now).closes_from,
        escalated_for="",
        owner_group_id=owned.team,
        owner_id=owned.person,
    )
    if owned.rule is not None:
        case.record(EventKind.ASSIGNED, attempt, item=item.pk, **_said(item, owned))
    return item


def _follow_rules(case: Case, attempt: Attempt, item: ReviewItem) -> None:
    """Another question may be somebody else's; what a person gave or holds stays theirs."""
    claimed = item.claim_until is not None and case.now < item.claim_until
    if item.owner_chosen or claimed:
        return
    owned = owner_by_rules(attempt, ReviewReason(item.reason))
    if (owned.team, owned.person) != (item.owner_group_id, item.owner_id):
        case.record(EventKind.ASSIGNED, attempt, item=item.pk, **own(item, owned))
