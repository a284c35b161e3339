"""Leave: the only door to a send. Successors are opened inside its transaction and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta

from ledger.authority import as_stored, authority_for_leave
from ledger.budgets import lock_accounts
from ledger.events import agent_actor
from ledger.faults import fault_point
from ledger.lifecycle.case import Case
from ledger.lifecycle.freshness import made_due, proven_absent_lately
from ledger.lifecycle.identity import insert_attempt
from ledger.lifecycle.locking import locked_attempt
from ledger.lifecycle.moves import move
from ledger.lifecycle.rule_changes import follow_rule
from ledger.lifecycle.standing import standing_in
from ledger.lifecycle.twins import hold_for_twin, lock_twins
from ledger.lifecycle.values import LeaveGiven, LeaveProblem, LeaveRefused
from ledger.models import ApiKey, Approval, ApprovalUse, Attempt
from ledger.policies import InForce, rule_in_force, rule_of
from ledger.rules.authority import Reason, Refused
from ledger.rules.budgets import How
from ledger.rules.scopes import narrowed
from ledger.rules.states import FINAL, OPEN_QUESTION, State
from ledger.rules.vocabulary import EventKind, ReviewReason
from ledger.transactions import database_clock

_TO_THE_DESK = (
    (Reason.POLICY_CHANGED, ReviewReason.POLICY_CHANGED),
    (Reason.KEY_WINDOW_OVER, ReviewReason.KEY_WINDOW_OVER),
    (Reason.ATTEMPTS_USED_UP, ReviewReason.ATTEMPTS_USED_UP),
)
"""Refusals that no waiting mends: they move a FAILED_RETRYABLE attempt to a person."""


def give_leave(
    *, key: ApiKey, attempt_id: str, worker_id: str, leave_id: str, args_hash: str
) -> LeaveGiven | LeaveRefused:
    """Give permission to send, once, or say why not.

    The first time INTENT_RECORDED becomes DISPATCHED. For a new send the earlier attempt becomes SUPERSEDED
    and attempt n+1 is inserted and DISPATCHED in this one transaction; until then look-ups of it go on. The
    same agent, worker and `leave_id` inside the lease get the same answer again while authority holds.
    """
    with locked_attempt(attempt_id, tenant_id=key.tenant_id, actor=agent_actor(key.agent)) as (case, asked):
        attempt = case.speaker(asked)
        lock_accounts(case.operation.run_id)
        lock_twins(case.operation, tool=attempt.tool, args_hash=attempt.args_hash)
        key, case.now = as_stored(key), database_clock()
        if _is_same_life(case, attempt, key, worker_id, leave_id):
            return _again(case, attempt, key)
        problem = _problem(case, attempt, args_hash)
        if problem:
            return _refused(case, attempt, problem)
        in_force = rule_in_force(attempt.tenant_id, attempt.tool)
        refusal = (
            _follow_rule(case, attempt, in_force)
            or _check_authority(case, attempt, key)
            or _check_twins(case, attempt)
        )
        if refusal:
            return refusal
        sent = _dispatch(case, attempt, key, in_force, worker_id, leave_id)
        fault_point("leave.before_commit")
        return LeaveGiven(sent, case.operation, replayed=False)


def _is_same_life(case: Case, attempt: Attempt, key: ApiKey, worker_id: str, leave_id: str) -> bool:
    return (
        attempt.state == State.DISPATCHED
        and attempt.agent_id == key.agent_id
        and (attempt.worker_id, attempt.leave_id) == (worker_id, leave_id or worker_id)
        and attempt.lease_until is not None
        and case.now < attempt.lease_until
    )


def _again(case: Case, attempt: Attempt, key: ApiKey) -> LeaveGiven | LeaveRefused:
    authority = authority_for_leave(
        case.operation, attempt, key=key, approval=None, needs_approval=False, now=case.now, replay=True
    )
    if isinstance(authority, Refused):
        return _not_authorised(case, attempt, authority)
    return LeaveGiven(attempt, case.operation, replayed=True)


Row = tuple[LeaveProblem, Callable[[Case, Attempt], bool]]


def _waits_for_variant(case: Case, attempt: Attempt) -> bool:
    unsent = attempt.state in (State.INTENT_RECORDED, State.FAILED_RETRYABLE)
    return unsent and case.held_variant() is not None


def _unapproved(state: State) -> Callable[[Case, Attempt], bool]:
    return lambda case, attempt: attempt.state == state and attempt.pk not in case.approvals


def _backing_off(case: Case, attempt: Attempt) -> bool:
    return attempt.send_again_at is not None and case.now < attempt.send_again_at


def _look_up_first(case: Case, attempt: Attempt) -> bool:
    """An approved new send rests on a fresh *absent* where the tool can be looked up; else one is made
    due."""
    if attempt.state not in OPEN_QUESTION or proven_absent_lately(attempt, case.now):
        return False
    made_due(case, attempt)
    return True


_ROWS: tuple[Row, ...] = (
    (LeaveProblem.ALREADY_DONE, lambda case, _attempt: case.confirmed is not None),
    (LeaveProblem.IN_FLIGHT, lambda _case, attempt: attempt.state == State.DISPATCHED),
    (
        LeaveProblem.ON_HOLD,
        lambda case, attempt: case.has_open_conflict or case.undecided_send_beside(attempt),
    ),
    (LeaveProblem.LEDGER_EXECUTES, lambda _case, attempt: rule_of(attempt).executor == "ledger"),
    (LeaveProblem.ILLEGAL_TRANSITION, lambda _case, attempt: attempt.state in FINAL),
    (LeaveProblem.ON_HOLD, _waits_for_variant),
    (LeaveProblem.ON_HOLD, _unapproved(State.MANUAL_REVIEW)),
    (LeaveProblem.IN_FLIGHT, _unapproved(State.UNKNOWN)),
    (LeaveProblem.IN_FLIGHT, _backing_off),
)


def _problem(case: Case, attempt: Attempt, args_hash: str) -> LeaveProblem | None:
    for problem, holds in _ROWS:
        if holds(case, attempt):
            return problem
    if args_hash != attempt.args_hash:
        return LeaveProblem.ARGS_CHANGED
    return LeaveProblem.IN_FLIGHT if _look_up_first(case, attempt) else None


def _follow_rule(case: Case, attempt: Attempt, in_force: InForce) -> LeaveRefused | None:
    refused = follow_rule(case, attempt, in_force)
    if refused:
        return _not_authorised(case, attempt, Refused(refused))
    if attempt.state == State.FAILED_RETRYABLE and attempt.held_at is not None:
        move(case, attempt, State.MANUAL_REVIEW, reason=ReviewReason.APPROVAL_REQUIRED)
        return _refused(case, attempt, LeaveProblem.ON_HOLD)
    return _refused(case, attempt, LeaveProblem.ON_HOLD) if attempt.is_held else None


def _check_authority(case: Case, attempt: Attempt, key: ApiKey) -> LeaveRefused | None:
    authority = authority_for_leave(
        case.operation,
        attempt,
        key=key,
        approval=case.approvals.get(attempt.pk),
        needs_approval=needs_approval(attempt),
        now=case.now,
    )
    return _not_authorised(case, attempt, authority) if isinstance(authority, Refused) else None


def _check_twins(case: Case, attempt: Attempt) -> LeaveRefused | None:
    held = hold_for_twin(case, attempt, case.approvals.get(attempt.pk))
    return _refused(case, attempt, LeaveProblem.ON_HOLD) if held else None


def needs_approval(attempt: Attempt) -> bool:
    """Whatever was ever held, and every new send from UNKNOWN or MANUAL_REVIEW, is a send with approval."""
    return attempt.held_at is not None or attempt.state in OPEN_QUESTION


def _refused(case: Case, attempt: Attempt, problem: LeaveProblem) -> LeaveRefused:
    standing = standing_in(case, attempt)
    return LeaveRefused(
        problem, standing, retry_after_s=standing.retry_after_s or _wait_s(problem, case, attempt)
    )


def _wait_s(problem: LeaveProblem, case: Case, attempt: Attempt) -> int | None:
    if problem is not LeaveProblem.IN_FLIGHT:
        return None
    until = attempt.send_again_at or attempt.lease_until or case.now
    return max(1, math.ceil((until - case.now).total_seconds()))


def _not_authorised(case: Case, attempt: Attempt, authority: Refused) -> LeaveRefused:
    """The refusal is kept in the history; three reasons bring a FAILED_RETRYABLE attempt to a person."""
    _record_refusal(case, attempt, [str(reason) for reason in authority.reasons])
    if attempt.state == State.FAILED_RETRYABLE:
        to_desk = [review for reason, review in _TO_THE_DESK if reason in authority.reasons]
        if to_desk:
            move(case, attempt, State.MANUAL_REVIEW, reason=to_desk[0])
    return LeaveRefused(LeaveProblem.NOT_AUTHORISED, standing_in(case, attempt), reasons=authority.reasons)


def _record_refusal(case: Case, attempt: Attempt, reasons: list[str]) -> None:
    """An agent that keeps asking is refused once in the history, until something else happens."""
    last = case.operation.events.order_by("-sequence").first()
    told = last is not None and last.kind == EventKind.LEAVE_REFUSED and last.attempt_id == attempt.pk
    if not (told and last is not None and last.data["reasons"] == reasons):
        case.record(EventKind.LEAVE_REFUSED, attempt, reasons=reasons)


def _dispatch(
    case: Case, attempt: Attempt, key: ApiKey, in_force: InForce, worker_id: str, leave_id: str
) -> Attempt:
    approval = _use(case, attempt)
    scopes = narrowed(attempt.scopes, key.scopes)
    sent = (
        attempt if attempt.state == State.INTENT_RECORDED else _successor(case, attempt, in_force, approval)
    )
    timeout_s = rule_of(sent).dispatch_timeout_s
    move(
        case,
        sent,
        State.DISPATCHED,
        how=How.LEAVE,
        dispatched_at=case.now,
        key_first_sent_at=sent.key_first_sent_at or case.now,
        worker_id=worker_id,
        leave_id=leave_id or worker_id,
        lease_until=case.now + timedelta(seconds=timeout_s),
        lease_epoch=sent.lease_epoch + 1,
        scopes=scopes,
        said={"worker_id": worker_id, "key": key.key_id, "approval": approval.pk if approval else None},
    )
    if approval:
        _record_use(case, approval, sent)
    return sent


def _use(case: Case, attempt: Attempt) -> Approval | None:
    """Spend the waiting approval in this transaction: single use, whatever happens to the send."""
    approval = case.approvals.pop(attempt.pk, None)
    if approval is not None:
        approval.used_at = case.now
        approval.save(update_fields=["used_at"])
    return approval


def _record_use(case: Case, approval: Approval, sent: Attempt) -> None:
    ApprovalUse.objects.create(
        tenant_id=sent.tenant_id,
        approval=approval,
        attempt=sent,
        args_hash=sent.args_hash,
        rule_hash=approval.votes.all()[0].rule_hash,
        at=case.now,
    )


def _successor(case: Case, earlier: Attempt, in_force: InForce, approval: Approval | None) -> Attempt:
    """Replace the earlier attempt by the next one, under the rule in force, with the same provider key unless
    the approvers chose a new one."""
    if in_force.snapshot is None:
        raise AssertionError("authority allows no send without a policy")
    generation = _generation(earlier, approval)
    move(case, earlier, State.SUPERSEDED, how=How.LEAVE, said={"replaced_by_number": len(case.attempts) + 1})
    return insert_attempt(
        case,
        tool=earlier.tool,
        args_bytes=earlier.canonical_args,
        args=earlier.args,
        args_hash=earlier.args_hash,
        agent=earlier.agent,
        policy=in_force.snapshot,
        scopes=earlier.scopes,
        generation=generation,
        descends_from=earlier,
        requested_by=earlier.requested_by,
        arguments_by=earlier.arguments_by,
        actor=earlier.actor,
        expires_at=earlier.expires_at,
        key_first_sent_at=earlier.key_first_sent_at if generation == earlier.generation else None,
    )


def _generation(earlier: Attempt, approval: Approval | None) -> int:
    if approval is None:
        return earlier.generation
    return max(vote.generation for vote in approval.votes.all())
