"""Apply what a look-up found, in one transaction that checks the epoch, the state and authority again."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ledger.authority import authority_after_absent, key_window_ends_at
from ledger.events import RECONCILER
from ledger.lifecycle.case import Case
from ledger.lifecycle.earlier import told_apart
from ledger.lifecycle.escalating import escalate_overdue
from ledger.lifecycle.freshness import made_due, settle_ends_at
from ledger.lifecycle.locking import locked_attempt
from ledger.lifecycle.moves import move, void_all_approvals
from ledger.lifecycle.settled_by import (
    confirm,
    fail,
    is_same_effect,
    open_conflict,
    supersede,
    to_review,
)
from ledger.lifecycle.twins import sent_twins
from ledger.models import Attempt, LookUp, Provider
from ledger.policies import rule_of, veil_over
from ledger.rules.authority import Allowed, as_told
from ledger.rules.backoff import look_up_backoff_s, negative_spacing_s, probe_backoff_s
from ledger.rules.looked_up import LookedUp, LookedUpKind, Record
from ledger.rules.reconcile import AttemptFacts, Follows, counted_records, decide
from ledger.rules.states import OPEN_QUESTION, State
from ledger.rules.vocabulary import ConfirmedBy, EventKind, FailedBy

_UNREADABLE = (LookedUpKind.UNAVAILABLE, LookedUpKind.ADAPTER_FAILED)


@dataclass(frozen=True)
class Asked:
    """One question: its epoch of the look-up lease, when that was taken, and who was asked."""

    epoch: int
    at: datetime
    provider: Provider | None


def apply_answer(
    *, attempt_id: str, epoch: int, asked_at: datetime, provider: Provider | None, looked_up: LookedUp
) -> Follows | None:
    """Store one answer and let it decide. None: a later look-up holds the lease, so this one is a zombie's;
    its answer is kept and a new look-up made due."""
    asked = Asked(epoch, asked_at, provider)
    with locked_attempt(attempt_id, tenant_id=None, actor=RECONCILER) as (case, attempt):
        if attempt.lookup_epoch != epoch:
            _keep_stale(case, attempt, asked, looked_up)
            return None
        follows = what_follows(case, attempt, asked, looked_up)
        follow(case, attempt, asked, looked_up, follows)
        return follows


def what_follows(case: Case, attempt: Attempt, asked: Asked, looked_up: LookedUp) -> Follows:
    """Authority and twins are asked only where nothing is there: of what is, nothing is sent again."""
    facts = facts_of(case, attempt)
    if counted_records(looked_up, facts.earlier) or looked_up.kind in _UNREADABLE:
        return decide(facts, looked_up, Allowed(), case.now, asked_at=asked.at)
    facts = replace(facts, twin_sent=sent_twins(case, attempt).exists())
    authority = authority_after_absent(case.operation, attempt, now=case.now)
    return decide(facts, looked_up, authority, case.now, asked_at=asked.at)


def follow(case: Case, attempt: Attempt, asked: Asked, looked_up: LookedUp, follows: Follows) -> None:
    """Write down the answer and what it leads to."""
    _store(case, attempt, asked, looked_up, follows)
    _count(case, attempt, asked, looked_up, follows)
    _apply(case, attempt, looked_up, follows)
    if follows.may_escalate:
        escalate_overdue(case, attempt)


def facts_of(case: Case, attempt: Attempt) -> AttemptFacts:
    """What the ledger knows of an attempt, as the recovery table asks it."""
    rule = rule_of(attempt)
    references, earlier = told_apart(case, attempt)
    return AttemptFacts(
        effect=rule.effect,
        idempotent=rule.idempotent,
        state=State(attempt.state),
        send_lease_ended_at=settle_ends_at(attempt, 0),
        settle_s=rule.settle_s,
        checks=attempt.checks,
        max_checks=rule.max_checks,
        negatives=attempt.negatives,
        last_negative_at=attempt.last_negative_at,
        adapter_failures=attempt.adapter_failures,
        has_positive_evidence=attempt.positive_evidence,
        success_reported=attempt.success_reported,
        confirm_by_lookup=rule.confirm == "lookup" and attempt.success_reported,
        cancelled=case.operation.cancelled_at is not None,
        rejected=attempt.closed_to_sending_at is not None,
        max_attempts_used=case.sends >= rule.max_attempts,
        key_window_ends_at=key_window_ends_at(attempt, rule),
        ever_held=case.ever_held(attempt),
        references=references,
        earlier=earlier,
    )


def _keep_stale(case: Case, attempt: Attempt, asked: Asked, looked_up: LookedUp) -> None:
    _store(case, attempt, asked, looked_up, Follows(row="stale"))
    found = _counted(case, attempt, looked_up)
    if found:
        _keep_finding(case, attempt)
        _contradict(case, attempt, found)
    if attempt.state in OPEN_QUESTION and attempt.was_sent:
        made_due(case, attempt)


def _store(case: Case, attempt: Attempt, asked: Asked, looked_up: LookedUp, follows: Follows) -> None:
    veil = veil_over(attempt)
    records = [{**_named(record), "data": veil.over(record.data)} for record in looked_up.records]
    look_up = LookUp(
        tenant_id=attempt.tenant_id,
        attempt=attempt,
        provider=asked.provider,
        epoch=asked.epoch,
        asked_at=asked.at,
        answered_at=case.now,
        answer=looked_up.kind,
        records=records,
        detail=veil.over_text(looked_up.detail)[:4000],
        row=follows.row,
        believed_absent=follows.believed_absent,
    )
    case.pen.keep(look_up)
    references = [record["reference"] for record in records]
    case.record(EventKind.LOOKED_UP, attempt, answer=looked_up.kind, row=follows.row, references=references)


def _named(record: Record) -> dict[str, Any]:
    """What a record is, without what the provider says in it: that is kept with the look-up alone."""
    return {"reference": record.reference, "content": record.content, "state": record.state}


def _count(case: Case, attempt: Attempt, asked: Asked, looked_up: LookedUp, follows: Follows) -> None:
    """Give the look-up lease back and count what this answer was."""
    changes: dict[str, Any] = {
        "lookup_lease_until": None,
        "next_check_at": _next_check(case, attempt, follows),
    }
    changes["lookup_failures"] = attempt.lookup_failures + 1 if looked_up.kind in _UNREADABLE else 0
    failed = looked_up.kind is LookedUpKind.ADAPTER_FAILED
    changes["adapter_failures"] = attempt.adapter_failures + 1 if failed else 0
    if follows.check_counted:
        changes["checks"] = attempt.checks + 1
    if follows.negative_counted:
        changes |= {"negatives": attempt.negatives + 1, "last_negative_at": asked.at}
    case.change(attempt, **changes)


def _next_check(case: Case, attempt: Attempt, follows: Follows) -> datetime | None:
    """When to ask again; an UNKNOWN attempt always has a next time."""
    if attempt.state != State.UNKNOWN:
        return None
    settle_s = rule_of(attempt).settle_s
    if follows.check_again_in == "soon":
        return case.now + timedelta(seconds=negative_spacing_s(settle_s))
    roll = random.random()  # noqa: S311
    if follows.row == "unavailable" and not follows.check_counted:
        return case.now + timedelta(seconds=probe_backoff_s(attempt.lookup_failures, roll=roll))
    wait_s = max(min(1.0, settle_s), look_up_backoff_s(attempt.checks, roll=roll))
    soonest = case.now + timedelta(seconds=wait_s)
    return max(soonest, settle_ends_at(attempt, settle_s)) if follows.row == "absent_too_early" else soonest


def _apply(case: Case, attempt: Attempt, looked_up: LookedUp, follows: Follows) -> None:
    if follows.found:
        _keep_finding(case, attempt)
    if follows.to is not None:
        _move(case, attempt, follows)
    elif follows.reason is not None:
        to_review(case, attempt, follows.reason)
    else:
        _contradict(case, attempt, _counted(case, attempt, looked_up))


def _keep_finding(case: Case, attempt: Attempt) -> None:
    """Something exists: no waiting approval survives that, and a later *absent* contradicts it."""
    void_all_approvals(case, "found by a look-up")
    if not attempt.is_final and not attempt.positive_evidence:
        case.change(attempt, positive_evidence=True)


def _move(case: Case, attempt: Attempt, follows: Follows) -> None:
    said = {"row": follows.row}
    reference = (follows.record.reference if follows.record else None) or ""
    if follows.to is State.OUTCOME_CONFIRMED:
        _happened(case, attempt, reference, said)
    elif follows.to is State.FAILED:
        failure = follows.cause or "failed_there"
        fail(case, attempt, by=FailedBy.LOOKUP, failure=failure, said={"reference": reference, **said})
    elif follows.to is State.FAILED_RETRYABLE:
        move(case, attempt, follows.to, absent_by_lookup=follows.row != "read", said=said)
    elif follows.reason is not None:
        to_review(case, attempt, follows.reason, said=as_told(follows.refused) if follows.refused else None)


def _happened(case: Case, attempt: Attempt, reference: str, said: dict[str, str]) -> None:
    """It exists there: confirmed, unless another attempt is; then the same effect, or possibly a second."""
    confirmed = case.confirmed
    if confirmed is None:
        confirm(case, attempt, by=ConfirmedBy.LOOKUP, reference=reference, said=said)
    elif is_same_effect(confirmed, {reference}):
        supersede(case, attempt, how="same_effect", said=said)
    else:
        open_conflict(case, attempt, evidence={"reference": reference, **said})


def _counted(case: Case, attempt: Attempt, looked_up: LookedUp) -> tuple[Record, ...]:
    return counted_records(looked_up, told_apart(case, attempt)[1])


def _contradict(case: Case, attempt: Attempt, found: tuple[Record, ...]) -> None:
    """Only something found can contradict a final state, or the proof that a new send rests on. What the
    confirmed attempt names already is the same effect."""
    if not (attempt.is_final or attempt.state == State.FAILED_RETRYABLE):
        return
    contradicting = [record for record in found if not _agrees(case, attempt, record)]
    if contradicting:
        open_conflict(case, attempt, evidence={"records": [_named(record) for record in contradicting]})


def _agrees(case: Case, attempt: Attempt, record: Record) -> bool:
    references = {record.reference or ""}
    confirmed = case.confirmed
    if confirmed is not None and is_same_effect(confirmed, references):
        return record.state in ("done", "in_progress") and record.content == "same"
    return attempt.state == State.FAILED and record.state == "failed"
