"""Whether a new send may rest on what the provider last said."""

from __future__ import annotations

from datetime import datetime, timedelta

from ledger.authority import key_window_ends_at
from ledger.lifecycle.case import Case
from ledger.models import Attempt, LookUp
from ledger.policies import rule_of
from ledger.transactions import remembered

FRESH_FOR = timedelta(minutes=5)


def proven_absent_lately(attempt: Attempt, now: datetime) -> bool:
    """A tool without look-up can prove nothing and needs none. Else: no look-up is in flight, and the last
    answer was an *absent* that is believed, asked for under 5 minutes ago and after the settle window."""
    rule = rule_of(attempt)
    if not rule.has_lookup or not attempt.was_sent:
        return True
    last = None if look_up_in_flight(attempt, now) else last_answer(attempt)
    asked_at = last.asked_at if last is not None and proves_absent(attempt, last) else None
    return asked_at is not None and now - asked_at < FRESH_FOR


def proves_absent(attempt: Attempt, answer: LookUp) -> bool:
    """Is this an *absent* that is believed, asked for after the attempt's settle window? Before that it may
    only mean *not yet*."""
    settled_at = settle_ends_at(attempt, rule_of(attempt).settle_s)
    return answer.believed_absent and answer.asked_at is not None and settled_at <= answer.asked_at


def settle_ends_at(attempt: Attempt, settle_s: float) -> datetime:
    """Before this an *absent* may only mean *not yet*; counted from the send lease's end."""
    ended_at = attempt.lease_ended_at or attempt.lease_until or attempt.entered_state_at
    return ended_at + timedelta(seconds=settle_s)


def lease_end(attempt: Attempt, wanted: datetime, *, now: datetime) -> datetime:
    """When a send lease ends. One that repeats a key the provider still knows ends with that knowledge: what
    is sent later would be no repetition to it."""
    first_sent_at, knows_until = attempt.key_first_sent_at, key_window_ends_at(attempt, rule_of(attempt))
    repeats = first_sent_at is not None and first_sent_at != attempt.dispatched_at
    if not repeats or knows_until is None or knows_until <= now:
        return wanted
    return min(wanted, knows_until)


def look_up_in_flight(attempt: Attempt, now: datetime) -> bool:
    return attempt.lookup_lease_until is not None and now < attempt.lookup_lease_until


def made_due(case: Case, attempt: Attempt) -> None:
    """The next pass of the reconciler asks about this attempt."""
    case.change(attempt, next_check_at=case.now)


@remembered
def last_answer(attempt: Attempt) -> LookUp | None:
    """What the provider last said of this attempt; a zombie's answer is no later word."""
    return attempt.lookups.exclude(row="stale").order_by("-answered_at").first()
