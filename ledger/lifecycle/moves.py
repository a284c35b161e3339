"""The one function that changes the state of an attempt, with all that belongs to the change: row, event,
review item, approval, budget."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from ledger import budgets
from ledger.lifecycle import items
from ledger.lifecycle.case import Case
from ledger.lifecycle.freshness import made_due
from ledger.lifecycle.statements import end_statements
from ledger.models import Attempt, Event
from ledger.policies import rule_now, rule_of
from ledger.rules.backoff import resend_backoff_s
from ledger.rules.budgets import How, Units
from ledger.rules.states import FINAL, OPEN_QUESTION, WAITS_FOR_AGENT, State, check_move
from ledger.rules.vocabulary import ActorKind, EventKind, ReviewReason

_KIND_OF_STATE = {
    State.INTENT_RECORDED: EventKind.APPROVED,
    State.DISPATCHED: EventKind.DISPATCHED,
    State.UNKNOWN: EventKind.UNKNOWN,
    State.MANUAL_REVIEW: EventKind.REVIEW,
    State.FAILED_RETRYABLE: EventKind.RETRYABLE,
    State.OUTCOME_CONFIRMED: EventKind.CONFIRMED,
    State.FAILED: EventKind.FAILED,
    State.CANCELLED: EventKind.CANCELLED,
    State.SUPERSEDED: EventKind.SUPERSEDED,
}


def move(
    case: Case,
    attempt: Attempt,
    to: State,
    *,
    reason: ReviewReason | None = None,
    how: How = How.FINDING,
    actual: Units | None = None,
    said: Mapping[str, Any] | None = None,
    **facts: Any,
) -> Event:
    """Move one attempt of a locked operation.

    `reason` is why a person or the reconciler must look (UNKNOWN and MANUAL_REVIEW only); `facts` are columns
    that change with the state; `said` goes into the event. Raises `IllegalMove` and leaves the row as it was.
    """
    source = State(attempt.state)
    item = case.items.get(attempt.pk)
    check_move(
        source,
        to,
        sent=attempt.was_sent or bool(facts.get("maybe_sent")),
        maybe_sent=attempt.maybe_sent,
        conflict_open=item is not None and item.reason == ReviewReason.CONFLICTING_EVIDENCE,
    )
    columns = {**_columns(case, attempt, source, to), "reason": reason or "", **facts}
    _write(case, attempt, source, {"state": to, **columns})
    case.moved = True
    event = case.record(
        _KIND_OF_STATE[to],
        attempt,
        **{"from": source, "to": to, **({"reason": reason} if reason else {}), **(said or {})},
    )
    items.follow_move(case, attempt, reason)
    _void_approval(case, attempt, to)
    if item is not None and to not in OPEN_QUESTION and not case.unheard:
        end_statements(case, attempt, to, event)
    _enter_budget(case, attempt, source, to, how, actual or {})
    return event


def look_again(case: Case, attempt: Attempt) -> None:
    """Make a look-up due now; what only a person might have decided is UNKNOWN again."""
    if attempt.state == State.MANUAL_REVIEW:
        move(case, attempt, State.UNKNOWN, reason=ReviewReason.UNKNOWN)
    else:
        made_due(case, attempt)


def void_approval(
    case: Case, attempt: Attempt, cause: str, *, reason: ReviewReason = ReviewReason.APPROVAL_EXPIRED
) -> None:
    """A waiting approval of this attempt leads to nothing any more; open votes fall with it, and what was
    held until that approval is back at the desk."""
    if not case.unheard:
        attempt.votes.filter(approval=None, voided_at=None).update(voided_at=case.now, void_cause=cause)
    drop_approval(case, attempt, cause)
    if attempt.state == State.INTENT_RECORDED and attempt.held_at is not None:
        move(case, attempt, State.MANUAL_REVIEW, reason=reason)


def drop_approval(case: Case, attempt: Attempt, cause: str) -> None:
    """A waiting approval of this attempt is void, and nothing else changes."""
    approval = case.approvals.pop(attempt.pk, None)
    if approval is not None:
        approval.voided_at, approval.void_cause = case.now, cause
        approval.save(update_fields=["voided_at", "void_cause"])
        case.record(EventKind.APPROVAL_VOIDED, attempt, approval=approval.pk, cause=cause)


def void_all_approvals(case: Case, cause: str) -> None:
    """Any fact that may mean it happened voids every waiting approval of the operation."""
    for attempt in case.attempts:
        void_approval(case, attempt, cause)


def _write(case: Case, attempt: Attempt, source: State, columns: dict[str, Any]) -> None:
    for name, value in columns.items():
        setattr(attempt, name, value)
    case.pen.change_from(source, attempt, *columns)


def _columns(case: Case, attempt: Attempt, source: State, to: State) -> dict[str, Any]:
    """What every entry into a state sets beside the facts of the particular move."""
    columns: dict[str, Any] = {"entered_state_at": case.now, "start_by": start_by(case, attempt, to)}
    if source is State.DISPATCHED:
        ended_at = min(case.now, attempt.lease_until or case.now)
        columns |= {"lease_until": None, "lease_ended_at": ended_at}
    if to is State.UNKNOWN:
        columns["next_check_at"] = case.now
    elif to is not State.DISPATCHED:
        columns["next_check_at"] = None
    if to is State.FAILED_RETRYABLE:
        wait_s = resend_backoff_s(attempt.number - 1, roll=random.random())  # noqa: S311
        columns |= {"send_again_at": case.now + timedelta(seconds=wait_s), "lookup_lease_until": None}
    if to in FINAL:
        columns |= {"lookup_lease_until": None, "send_again_at": None}
    return columns


def start_by(case: Case, attempt: Attempt, state: State) -> datetime | None:
    """Until when an attempt in this state waits for its agent; None where it waits for nobody."""
    if state not in WAITS_FOR_AGENT:
        return None
    return attempt.expires_at or case.now + timedelta(seconds=rule_of(attempt).start_within_s)


def _void_approval(case: Case, attempt: Attempt, to: State) -> None:
    """An approval outlives only the moves that keep its question open. What leads to a send is used by then:
    a yes that was given beside it knew nothing of that send."""
    if to in FINAL or to in (State.FAILED_RETRYABLE, State.DISPATCHED):
        void_approval(case, attempt, f"became {to}")


def _enter_budget(case: Case, attempt: Attempt, source: State, to: State, how: How, actual: Units) -> None:
    if case.operation.run_id is None:
        return
    person = case.actor.kind is ActorKind.OPERATOR and how is How.FINDING
    overrun = budgets.enter_move(
        attempt,
        run_id=case.operation.run_id,
        move_from=source,
        move_to=to,
        how=How.PERSON if person else how,
        now=case.now,
        rule=rule_now(attempt),
        actual=actual,
        books=case.books,
    )
    if overrun:
        case.record(EventKind.OVERRUN, attempt, units=list(overrun))
