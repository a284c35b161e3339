"""One line of the queue, made from rows already read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ledger.authority import key_window_of
from ledger.models import Approval, Decision, ReviewItem
from ledger.queries.arguments import sentence_of
from ledger.rules.states import State
from ledger.rules.vocabulary import HIGH_RISK, Effect, Escalation, ReviewReason
from review.queries.became import closing_of
from review.queries.steps import NO_RULE, next_step
from review.queries.tenants import tenant_view
from review.queries.urgency import RulesOfList
from review.queries.values import Claim, ContentHash, Escalated, Owner, QueueRow, VotesSoFar, WaitsOn
from review.queries.words import ESCALATION_WORDS, REASON_WORDS


@dataclass(frozen=True)
class RowFacts:
    """What was read for all rows of a page at once: `decisions` by item id, newest first, the others by
    attempt id."""

    user_id: int
    now: datetime
    approvals: Mapping[str, Approval]
    decisions: Mapping[str, Sequence[Decision]]
    votes: Mapping[str, VotesSoFar]


def queue_row(item: ReviewItem, rules: RulesOfList, facts: RowFacts) -> QueueRow:
    """The line of one item; no query."""
    attempt = item.attempt
    rule = rules.rules.get((attempt.policy_id, attempt.tool))
    approval = facts.approvals.get(attempt.pk)
    effect = rule.effect if rule else Effect.WRITE
    return QueueRow(
        item_id=item.pk,
        operation_id=item.operation_id,
        operation_key=item.operation.operation_key,
        attempt_id=attempt.pk,
        attempt_number=attempt.number,
        was_sent=attempt.was_sent,
        tenant=tenant_view(item.tenant),
        tool=attempt.tool,
        effect=effect,
        high_risk=effect in HIGH_RISK,
        state=State(attempt.state),
        reason=ReviewReason(item.reason),
        reason_words=REASON_WORDS[ReviewReason(item.reason)],
        sentence=sentence_of(attempt, rule),
        hash=ContentHash(attempt.args_hash),
        opened_at=item.opened_at,
        entered_state_at=attempt.entered_state_at,
        due_at=item.due_at,
        overdue=is_overdue(item, facts.now),
        key_window=key_window_of(attempt, rule or NO_RULE, facts.now),
        escalated=escalated(item),
        next_step=next_step(item, rule, approval, facts.now),
        owner=owner_of(item, facts.user_id, facts.now),
        claim=claim_of(item, facts.user_id, facts.now),
        approval_until=approval.expires_at if approval else None,
        votes=facts.votes.get(attempt.pk),
        closing=closing_of(item, facts.decisions.get(item.pk, ())),
        snoozed_until=snoozed_until(item, facts.now),
        waits_on=waits_on(item),
    )


def is_overdue(item: ReviewItem, now: datetime) -> bool:
    return item.closed_at is None and item.due_at <= now


def owner_of(item: ReviewItem, user_id: int, now: datetime) -> Owner:
    """`item` is read with its `owner_away_until`."""
    until: datetime | None = vars(item)["owner_away_until"]
    return Owner(
        item.owner_group.name,
        item.owner.get_username() if item.owner else None,
        is_me=item.owner_id == user_id,
        person_is_active=item.owner is None or item.owner.is_active,
        away_until=until if until is not None and now < until else None,
    )


def claim_of(item: ReviewItem, user_id: int, now: datetime) -> Claim | None:
    """The claim, while it lives."""
    if item.claimed_by is None or item.claim_until is None or item.claim_until <= now:
        return None
    return Claim(item.claimed_by.get_username(), item.claim_until, is_mine=item.claimed_by_id == user_id)


def escalated(item: ReviewItem) -> Escalated | None:
    """Why time calls people to an open item; None where it does not."""
    if item.escalated_at is None or item.closed_at is not None:
        return None
    because = Escalation(item.escalated_for)
    return Escalated(item.escalated_at, because, ESCALATION_WORDS[because])


def snoozed_until(item: ReviewItem, now: datetime) -> datetime | None:
    """The end of a snooze that still lasts."""
    until = item.snoozed_until
    return until if until is not None and now < until and item.closed_at is None else None


def waits_on(item: ReviewItem) -> WaitsOn | None:
    return WaitsOn(item.waiting_on, item.waiting_on_url) if item.waiting_on else None
