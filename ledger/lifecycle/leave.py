"""Leave: the only door to a send. Successors are opened inside its transaction and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ledger.authority import authority_for_leave, hold_authority, usable_keys
from ledger.budgets import lock_accounts
from ledger.faults import fault_point
from ledger.lifecycle.askers import Asker, agent_asks, credentials, ledger_asks
from ledger.lifecycle.case import Case
from ledger.lifecycle.freshness import lease_end, made_due, proven_absent_lately
from ledger.lifecycle.identity import insert_attempt
from ledger.lifecycle.locking import locked_attempt
from ledger.lifecycle.moves import move
from ledger.lifecycle.rule_changes import follow_rule
from ledger.lifecycle.standing import standing_in
from ledger.lifecycle.twins import hold_for_twin, lock_twins
from ledger.lifecycle.values import LeaveGiven, LeaveProblem, LeaveRefused
from ledger.lifecycle.voiding import lapsed_approval
from ledger.models import ApiKey, Approval, ApprovalUse, Attempt
from ledger.policies import InForce, rule_in_force, rule_of, rule_of_next_send
from ledger.rules.authority import ApprovalFacts, Reason, Refused, as_told
from ledger.rules.budgets import How
from ledger.rules.scopes import narrowed
from ledger.rules.states import FINAL, OPEN_QUESTION, WAITS_FOR_AGENT, State
from ledger.rules.vocabulary import EventKind, ReviewReason
from ledger.transactions import database_clock

_TO_THE_DESK = (
    (Reason.POLICY_CHANGED, ReviewReason.POLICY_CHANGED),
    (Reason.KEY_WINDOW_OVER, ReviewReason.KEY_WINDOW_OVER),
    (Reason.ATTEMPTS_USED_UP, ReviewReason.ATTEMPTS_USED_UP),
)
"""Refusals that no waiting mends: they move a FAILED_RETRYABLE attempt to a person."""


_ASK_AGAIN_AT_LEAST = timedelta(seconds=2)
_ASK_AGAIN_AT_MOST = timedelta(minutes=2)
"""Between these, a refused send of the ledger is asked for again after a tenth of the time it waited."""


@dataclass(frozen=True)
class _Ask:
    """One question for leave about one locked attempt: who asks, with which keys, under which policy."""

    case: Case
    attempt: Attempt
    asker: Asker
    keys: Sequence[ApiKey]
    in_force: InForce


Answer = Callable[[_Ask], LeaveGiven | LeaveRefused]


def give_leave(
    *, key: ApiKey, attempt_id: str, worker_id: str, leave_id: str, args_hash: str
) -> LeaveGiven | LeaveRefused:
    """Give an agent permission to send, once, or say why not.

    The first time INTENT_RECORDED becomes DISPATCHED. For a new send the earlier attempt becomes SUPERSEDED
    and attempt n+1 is inserted and DISPATCHED in this one transaction; until then look-ups of it go on. The
    same agent, worker and `leave_id` inside the lease get the same answer again while authority holds.
    """
    asker = agent_asks(key=key, worker_id=worker_id, leave_id=leave_id, args_hash=args_hash)
    return _leave(attempt_id, asker)[1]


def give_leave_to_ledger(*, attempt_id: str, worker_id: str, leave_id: str) -> LeaveGiven | LeaveRefused:
    """Give the ledger itself permission to send, with the live keys of the attempt's agent: the same door.

    What is refused and may be allowed later is not asked for again at once.
    """
    ask, answer = _leave(attempt_id, ledger_asks(worker_id=worker_id, leave_id=leave_id))
    if isinstance(answer, LeaveRefused):
        wait_for_a_better_time(ask.case, ask.attempt, soon=answer.problem is LeaveProblem.IN_FLIGHT)
    return answer


def leave_still_holds(*, attempt_id: str, worker_id: str, leave_id: str) -> LeaveGiven | LeaveRefused:
    """Does the leave that this life of the ledger was given for exactly this attempt hold? It opens nothing:
    what has taken the attempt's place meanwhile is another send, which this life has not read."""
    asker = ledger_asks(worker_id=worker_id, leave_id=leave_id)
    return _leave(attempt_id, asker, otherwise=_over)[1]


def wait_for_a_better_time(case: Case, attempt: Attempt, *, soon: bool = False) -> None:
    """Put off the next try of the ledger to send this; the longer it waits, the rarer it is tried. `soon`: a
    look-up is on its way."""
    if attempt.state == State.DISPATCHED or attempt.state in FINAL:
        return
    waited = timedelta(0) if soon else (case.now - attempt.entered_state_at) / 10
    again_at = case.now + min(max(waited, _ASK_AGAIN_AT_LEAST), _ASK_AGAIN_AT_MOST)
    case.change(attempt, send_again_at=max(again_at, attempt.send_again_at or again_at))


def _leave(
    attempt_id: str, asker: Asker, *, otherwise: Answer | None = None
) -> tuple[_Ask, LeaveGiven | LeaveRefused]:
    """The same life is answered again; `otherwise` answers every other one, as a first ask unless given."""
    with locked_attempt(attempt_id, tenant_id=asker.tenant_id, actor=asker.actor) as (case, asked):
        attempt = case.speaker(asked)
        lock_twins(case.operation, tool=attempt.tool, args_hash=attempt.args_hash)
        lock_accounts(case.operation.run_id)
        hold_authority(attempt, asker.key)
        keys, case.now = asker.keys(attempt), database_clock()
        ask = _Ask(case, attempt, asker, keys, rule_in_force(attempt.tenant_id, attempt.tool))
        return ask, _again(ask) if _is_same_life(ask) else (otherwise or _first)(ask)


def _first(ask: _Ask) -> LeaveGiven | LeaveRefused:
    problem = _problem(ask)
    if problem:
        return _refused(ask, problem)
    refusal = _approval_taken_back(ask) or _follow_rule(ask) or _check_authority(ask) or _check_twins(ask)
    if refusal:
        return refusal
    sent = _dispatch(ask)
    fault_point("leave.before_commit")
    return LeaveGiven(sent, ask.case.operation, replayed=False)


def _over(ask: _Ask) -> LeaveRefused:
    """The lease ran out, or another attempt answers for this one: nothing that waiting would mend."""
    return _refused(ask, LeaveProblem.ILLEGAL_TRANSITION)


def _is_same_life(ask: _Ask) -> bool:
    attempt = ask.attempt
    return (
        attempt.state == State.DISPATCHED
        and rule_of(attempt).executor == ask.asker.executor
        and ask.asker.is_holder(attempt)
        and attempt.lease_until is not None
        and ask.case.now < attempt.lease_until
    )


def _again(ask: _Ask) -> LeaveGiven | LeaveRefused:
    case, attempt = ask.case, ask.attempt
    if _means_others(ask):
        return _refused(ask, LeaveProblem.ARGS_CHANGED)
    authority = authority_for_leave(
        case.operation, attempt, keys=ask.keys, approval=None, needs_approval=False, now=case.now, replay=True
    )
    if isinstance(authority, Refused):
        return _not_authorised(ask, authority)
    return LeaveGiven(attempt, case.operation, replayed=True)


Row = tuple[LeaveProblem, Callable[[_Ask], bool]]


def _means_others(ask: _Ask) -> bool:
    """Content is compared before state: whoever means other arguments is not told to come back for them."""
    return ask.asker.args_hash not in (None, ask.attempt.args_hash)


def _must_wait_for_another(ask: _Ask) -> bool:
    return ask.case.has_open_conflict or ask.case.undecided_send_beside(ask.attempt)


def _is_anothers_to_send(ask: _Ask) -> bool:
    """Who sends is decided by the rule of the send that is asked for, not by that of an earlier one."""
    return rule_of_next_send(ask.attempt, ask.in_force).executor != ask.asker.executor


def _waits_for_variant(ask: _Ask) -> bool:
    unsent = ask.attempt.state in WAITS_FOR_AGENT
    return unsent and ask.case.held_variant() is not None


def _unapproved(state: State) -> Callable[[_Ask], bool]:
    return lambda ask: (
        ask.attempt.state == state
        and ask.attempt.pk not in ask.case.approvals
        and lapsed_approval(ask.case, ask.attempt) is None
    )


def _backing_off(ask: _Ask) -> bool:
    return ask.attempt.send_again_at is not None and ask.case.now < ask.attempt.send_again_at


def _look_up_first(ask: _Ask) -> bool:
    """An approved new send rests on a fresh *absent* where the tool can be looked up; else one is made
    due."""
    approved = ask.attempt.state in OPEN_QUESTION and ask.attempt.pk in ask.case.approvals
    if not approved or proven_absent_lately(ask.attempt, ask.case.now):
        return False
    made_due(ask.case, ask.attempt)
    return True


_ROWS: tuple[Row, ...] = (
    (LeaveProblem.ALREADY_DONE, lambda ask: ask.case.confirmed is not None),
    (LeaveProblem.ARGS_CHANGED, _means_others),
    (LeaveProblem.IN_FLIGHT, lambda ask: ask.attempt.state == State.DISPATCHED),
    (LeaveProblem.ON_HOLD, _must_wait_for_another),
    (LeaveProblem.LEDGER_EXECUTES, _is_anothers_to_send),
    (LeaveProblem.ILLEGAL_TRANSITION, lambda ask: ask.attempt.state in FINAL),
    (LeaveProblem.ON_HOLD, _waits_for_variant),
    (LeaveProblem.ON_HOLD, _unapproved(State.MANUAL_REVIEW)),
    (LeaveProblem.IN_FLIGHT, _unapproved(State.UNKNOWN)),
    (LeaveProblem.IN_FLIGHT, _backing_off),
)


def _problem(ask: _Ask) -> LeaveProblem | None:
    for problem, holds in _ROWS:
        if holds(ask):
            return problem
    return LeaveProblem.IN_FLIGHT if _look_up_first(ask) else None


def _approval_taken_back(ask: _Ask) -> LeaveRefused | None:
    """What was approved and is no more is refused with the reason, as if the approval were still there."""
    lapsed = lapsed_approval(ask.case, ask.attempt) if ask.attempt.state in OPEN_QUESTION else None
    return None if lapsed is None else _authority(ask, lapsed)


def _follow_rule(ask: _Ask) -> LeaveRefused | None:
    case, attempt = ask.case, ask.attempt
    refused = follow_rule(case, attempt, ask.in_force)
    if refused:
        return _check_authority(ask)  # which lists every reason, not this one alone
    if attempt.state == State.FAILED_RETRYABLE and ask.case.ever_held(attempt):
        move(case, attempt, State.MANUAL_REVIEW, reason=ReviewReason.APPROVAL_REQUIRED)
        return _refused(ask, LeaveProblem.ON_HOLD)
    nothing_to_send = ask.asker.executor == "ledger" and attempt.args_bytes is None
    return _refused(ask, LeaveProblem.ON_HOLD) if attempt.is_held or nothing_to_send else None


def _check_authority(ask: _Ask) -> LeaveRefused | None:
    return _authority(ask, ask.case.approvals.get(ask.attempt.pk))


def _authority(ask: _Ask, approval: Approval | ApprovalFacts | None) -> LeaveRefused | None:
    authority = authority_for_leave(
        ask.case.operation,
        ask.attempt,
        keys=ask.keys,
        approval=approval,
        needs_approval=needs_approval(ask.attempt),
        now=ask.case.now,
    )
    return _not_authorised(ask, authority) if isinstance(authority, Refused) else None


def _check_twins(ask: _Ask) -> LeaveRefused | None:
    held = hold_for_twin(ask.case, ask.attempt, ask.case.approvals.get(ask.attempt.pk))
    return _refused(ask, LeaveProblem.ON_HOLD) if held else None


def needs_approval(attempt: Attempt) -> bool:
    """Whatever was ever held, and every new send from UNKNOWN or MANUAL_REVIEW, is a send with approval."""
    return attempt.held_at is not None or attempt.state in OPEN_QUESTION


def _refused(ask: _Ask, problem: LeaveProblem) -> LeaveRefused:
    standing = standing_in(ask.case, ask.attempt)
    wait_s = standing.retry_after_s or _wait_s(problem, ask.case, ask.attempt)
    may_read = problem is LeaveProblem.ARGS_CHANGED and _may_read(ask)
    return LeaveRefused(problem, standing, retry_after_s=wait_s, may_read=may_read)


def _may_read(ask: _Ask) -> bool:
    """Is there a live key that covers tool and target, of an agent that works here still?"""
    at_work = all(
        key.agent.is_active and key.agent.owner.is_active and key.agent.tenant.is_active for key in ask.keys
    )
    return at_work and bool(usable_keys(ask.attempt, ask.keys, ask.case.now))


def _wait_s(problem: LeaveProblem, case: Case, attempt: Attempt) -> int | None:
    if problem is not LeaveProblem.IN_FLIGHT:
        return None
    until = attempt.send_again_at or attempt.lease_until or case.now
    return max(1, math.ceil((until - case.now).total_seconds()))


def _not_authorised(ask: _Ask, authority: Refused) -> LeaveRefused:
    """The refusal is kept in the history; three reasons bring a FAILED_RETRYABLE attempt to a person."""
    case, attempt = ask.case, ask.attempt
    record_refusal(case, attempt, as_told(authority.reasons), because=authority.because)
    if attempt.state == State.FAILED_RETRYABLE:
        to_desk = [review for reason, review in _TO_THE_DESK if reason in authority.reasons]
        if to_desk:
            move(case, attempt, State.MANUAL_REVIEW, reason=to_desk[0])
    return LeaveRefused(
        LeaveProblem.NOT_AUTHORISED,
        standing_in(case, attempt),
        reasons=authority.reasons,
        because=authority.because,
    )


def record_refusal(
    case: Case, attempt: Attempt, told: Mapping[str, list[str]], *, because: tuple[str, ...] = ()
) -> None:
    """Whoever keeps asking is refused once in the history, until something else happens. `told`: the reasons,
    authority's in words too; `because` has the figures of the first time."""
    last = case.operation.events.order_by("-sequence").first()
    before = last is not None and last.kind == EventKind.LEAVE_REFUSED and last.attempt_id == attempt.pk
    if not (before and last is not None and last.data["reasons"] == told["reasons"]):
        figures = {"because": list(because)} if because else {}
        case.record(EventKind.LEAVE_REFUSED, attempt, **told, **figures)


def _dispatch(ask: _Ask) -> Attempt:
    case, attempt, asker = ask.case, ask.attempt, ask.asker
    approval = _use(case, attempt)
    held_scopes, whose = credentials(case, attempt, asker, ask.keys)
    scopes = narrowed(attempt.scopes, held_scopes)
    first = attempt.state == State.INTENT_RECORDED
    sent = attempt if first else _successor(case, attempt, ask.in_force, approval)
    lease_s = rule_of(sent).dispatch_timeout_s
    move(
        case,
        sent,
        State.DISPATCHED,
        how=How.LEAVE,
        dispatched_at=case.now,
        key_first_sent_at=sent.key_first_sent_at or case.now,
        worker_id=asker.worker_id,
        leave_id=asker.leave_id,
        lease_until=lease_end(sent, case.now + timedelta(seconds=lease_s), now=case.now),
        lease_epoch=sent.lease_epoch + 1,
        scopes=scopes,
        send_again_at=None,
        said={"worker_id": asker.worker_id, **whose, "approval": approval.pk if approval else None},
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
        key_first_sent_at=_first_sent_at(earlier) if generation == earlier.generation else None,
    )


def _first_sent_at(earlier: Attempt) -> datetime | None:
    """When the provider first saw this key; where it was sent without leave, not before it was made."""
    unseen = earlier.created_at if earlier.maybe_sent else None
    return earlier.key_first_sent_at or unseen


def _generation(earlier: Attempt, approval: Approval | None) -> int:
    if approval is None:
        return earlier.generation
    return max(vote.generation for vote in approval.votes.all())
