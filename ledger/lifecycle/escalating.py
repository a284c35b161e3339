"""Call people to an item before it is too late: an event, and a mark on every page. It ends a snooze,
and decides nothing."""

from __future__ import annotations

from ledger.authority import key_window_of
from ledger.events import SYSTEM
from ledger.lifecycle.case import Case
from ledger.lifecycle.locking import locked_attempt
from ledger.models import Attempt, ReviewItem
from ledger.policies import rule_of
from ledger.rules.key_window import KeyWindow, Protection
from ledger.rules.states import OPEN_QUESTION
from ledger.rules.vocabulary import Effect, Escalation, EventKind


def escalate_before_key_window_closes(*, attempt_id: str) -> bool:
    """Of an item that a new send may still follow: once, when the provider is about to forget the key, also
    where that has happened while nobody swept. False where it was too early, or nothing is lost."""
    with locked_attempt(attempt_id, tenant_id=None, actor=SYSTEM) as (case, attempt):
        item = case.items.get(attempt.pk)
        if item is None or item.escalate_at is None or case.now < item.escalate_at:
            return False
        window = key_window_of(attempt, rule_of(attempt), case.now)
        is_due = _loses_protection(case, attempt) and _is_closing(window, item)
        if is_due:
            said = {
                "key_window_ends_at": str(window.ends_at),
                "generation": window.generation,
            }
            _escalate(case, attempt, item, Escalation.KEY_WINDOW_CLOSING, **said)
        item.escalate_at = window.closes_from if window.protection is Protection.OPEN else None
        item.save(update_fields=["escalate_at"])
        return is_due


def escalate_overdue(case: Case, attempt: Attempt) -> None:
    """What a reachable provider leaves undecided beyond its due time; once for each due time."""
    item = case.items.get(attempt.pk)
    if item is None or attempt.state not in OPEN_QUESTION or case.now < item.due_at:
        return
    if item.escalated_at is None or item.escalated_at < item.due_at:
        _escalate(case, attempt, item, Escalation.OVERDUE, due_at=str(item.due_at))


def _is_closing(window: KeyWindow, item: ReviewItem) -> bool:
    """A window that was over before anybody was to look is no news."""
    if window.protection is not Protection.OVER:
        return window.protection is Protection.CLOSING
    looked_for, ends_at = item.escalate_at, window.ends_at
    return looked_for is not None and ends_at is not None and looked_for < ends_at


def _loses_protection(case: Case, attempt: Attempt) -> bool:
    """Could a new send still follow, and would it then be unprotected?"""
    sendable = attempt.state in OPEN_QUESTION and attempt.closed_to_sending_at is None
    over = case.confirmed is not None or case.operation.cancelled_at is not None
    return sendable and not over and rule_of(attempt).effect is not Effect.READ


def _escalate(case: Case, attempt: Attempt, item: ReviewItem, because: Escalation, **said: object) -> None:
    item.escalated_at, item.escalated_for, item.snoozed_until = case.now, because, None
    item.save(update_fields=["escalated_at", "escalated_for", "snoozed_until"])
    case.record(EventKind.ESCALATED, attempt, item=item.pk, because=because, **said)
