"""Where an attempt stands, as its agent is told."""

from __future__ import annotations

import math
from datetime import datetime

from ledger.lifecycle.case import Case, unlocked_case
from ledger.lifecycle.values import Standing
from ledger.models import Approval, Attempt
from ledger.policies import rule_in_force, rule_of_next_send
from ledger.rules.directive import Directive, StandingFacts, directive_of
from ledger.rules.states import WAITS_FOR_AGENT, Outcome, State

_LOOK_AGAIN_S = 2


def standing_of(attempt: Attempt) -> Standing:
    """Where this attempt stands now, read without a lock."""
    case = unlocked_case(attempt.operation)
    return standing_in(case, case.attempt(attempt.pk))


def standing_in(case: Case, attempt: Attempt) -> Standing:
    """Where an attempt of a case at hand stands; a replaced one answers by its descendant."""
    speaker = case.speaker(attempt)
    target = _relink_target(speaker)
    if target is not None:
        return target
    directive = _directive(case, speaker)
    if speaker.state == State.SUPERSEDED and case.operation.outcome == Outcome.OPEN:
        directive = _of_what_replaced_it(case)
    item = case.items.get(speaker.pk)
    confirmed = case.confirmed
    return Standing(
        operation=case.operation,
        attempt=speaker,
        directive=directive,
        reason=speaker.reason or speaker.failure,
        review_item_id=item.pk if item else None,
        result_ref=(confirmed.result_ref or confirmed.provider_request_id) if confirmed else None,
        policy_version=speaker.policy.version,
        due_at=_due_at(speaker, case.now),
        retry_after_s=_retry_after_s(speaker, directive, case.now),
    )


def _of_what_replaced_it(case: Case) -> Directive:
    """Other content took its place and is not settled: it is waited for, and never sent through this one."""
    directive = _directive(case, case.live() or case.newest)
    return Directive.IN_FLIGHT if directive is Directive.DISPATCH else directive


def is_waiting(approval: Approval | None, now: datetime) -> bool:
    """Is this an approval that may still be used?"""
    return approval is not None and now < approval.expires_at


def _directive(case: Case, attempt: Attempt) -> Directive:
    state = State(attempt.state)
    approved = is_waiting(case.approvals.get(attempt.pk), case.now)
    return directive_of(
        StandingFacts(
            state=state,
            any_confirmed=case.confirmed is not None,
            on_hold=case.has_open_conflict or _waits_for_another(case, attempt, approved=approved),
            approved=approved,
            backing_off=attempt.send_again_at is not None and case.now < attempt.send_again_at,
            ledger_executes=_ledger_sends_next(attempt, state, approved=approved),
        )
    )


def _ledger_sends_next(attempt: Attempt, state: State, *, approved: bool) -> bool:
    """Would the next send be the ledger's own? Asked only where there is one to come."""
    if state not in WAITS_FOR_AGENT and not approved:
        return False
    in_force = rule_in_force(attempt.tenant_id, attempt.tool)
    return rule_of_next_send(attempt, in_force).executor == "ledger"


def _waits_for_another(case: Case, attempt: Attempt, *, approved: bool) -> bool:
    """Would leave be refused until another attempt of the operation is decided?"""
    unsent = attempt.state in WAITS_FOR_AGENT
    variant = case.held_variant()
    if unsent and variant is not None and variant.pk != attempt.pk:
        return True
    return (unsent or approved) and case.undecided_send_beside(attempt)


def _relink_target(attempt: Attempt) -> Standing | None:
    """A relinked operation mirrors its target, which its agent never gets leave for through this one."""
    if attempt.relinked_to is None:
        return None
    target = standing_of(attempt.relinked_to.attempts.order_by("-number")[0])
    if target.directive is not Directive.DISPATCH:
        return target
    return Standing(**{**vars(target), "directive": Directive.IN_FLIGHT})


def _due_at(attempt: Attempt, now: datetime) -> datetime | None:
    """When the ledger goes on with it by itself; None where it waits for an agent, a person, or nothing."""
    if attempt.state == State.FAILED_RETRYABLE:
        return attempt.send_again_at if attempt.send_again_at and now < attempt.send_again_at else None
    if attempt.state == State.UNKNOWN:
        times = (attempt.next_check_at, attempt.lookup_lease_until)
        return max((time for time in times if time is not None), default=None)
    return attempt.lease_until if attempt.state == State.DISPATCHED else None


def _retry_after_s(attempt: Attempt, directive: Directive, now: datetime) -> int | None:
    """When it is worth asking again, in whole seconds; None where nothing changes by waiting."""
    if directive is Directive.IN_FLIGHT:
        until = attempt.send_again_at or attempt.lease_until
        return max(1, math.ceil((until - now).total_seconds())) if until else _LOOK_AGAIN_S
    if directive is Directive.RECONCILE:
        due_at = attempt.next_check_at or now
        return max(_LOOK_AGAIN_S, math.ceil((due_at - now).total_seconds()))
    return None
