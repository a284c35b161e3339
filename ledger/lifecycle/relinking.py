"""Relink an attempt to corrected arguments or to a record the provider has; say that a twin was meant."""

from __future__ import annotations

from typing import Any

from ledger.lifecycle.case import Case
from ledger.lifecycle.deciding import (
    Desk,
    at_the_desk,
    check_reference,
    refuse_unless,
)
from ledger.lifecycle.identity import insert_attempt
from ledger.lifecycle.moves import look_again, move, void_all_approvals, void_approval
from ledger.lifecycle.possible import check_possible
from ledger.lifecycle.settled_by import to_review
from ledger.lifecycle.twins import twins_of
from ledger.lifecycle.values import Decided
from ledger.models import Attempt, User
from ledger.policies import InForce, rule_in_force
from ledger.rules.budgets import How
from ledger.rules.canonical import content_hash
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind, ReviewReason


def relink_arguments(*, item_id: str, by: User, why: str, args_bytes: bytes, args: dict[str, Any]) -> Decided:
    """A new held attempt with corrected arguments, which needs an approval of its own.

    A held source becomes SUPERSEDED at once; a sent one stays, and the new one is approvable once it is
    FAILED. `args_bytes` are canonical. Raises `DecisionRefused`.
    """
    with at_the_desk(item_id, by) as desk:
        in_force = rule_in_force(desk.item.tenant_id, desk.attempt.tool)
        corrected_hash = content_hash(args_bytes)
        check_possible(desk, DecisionKind.RELINK_ARGUMENTS)
        _check_new(desk, corrected_hash)
        decided = desk.record(
            DecisionKind.RELINK_ARGUMENTS, why, args_hash=corrected_hash, before=desk.attempt.args_hash
        )
        source_held = desk.attempt.is_held
        if source_held:
            said = {"replaced_by_number": len(desk.case.attempts) + 1}
            move(desk.case, desk.attempt, State.SUPERSEDED, how=How.RELINK, said=said)
        else:
            void_approval(desk.case, desk.attempt, "arguments corrected")
        _insert_corrected(desk, in_force, args_bytes, args, corrected_hash)
        return decided


def relink_record(*, item_id: str, by: User, why: str, reference: str) -> Decided:
    """The provider has it under this reference: stored, and looked up at once."""
    with at_the_desk(item_id, by) as desk:
        case, attempt = desk.case, desk.attempt
        check_possible(desk, DecisionKind.RELINK_RECORD)
        check_reference(reference)
        before = attempt.result_ref or attempt.provider_request_id
        decided = desk.record(DecisionKind.RELINK_RECORD, why, reference=reference, before=before)
        void_all_approvals(case, "a provider record was named")
        _keep_reference(case, attempt, reference)
        _ask_anew(case, attempt)
        return decided


def intended_repeat(*, item_id: str, by: User, why: str) -> Decided:
    """The suspected duplicate is meant to happen once more: its twins are named in the history, and from now
    on it waits for an ordinary approval."""
    with at_the_desk(item_id, by) as desk:
        case, attempt = desk.case, desk.attempt
        check_possible(desk, DecisionKind.INTENDED_REPEAT)
        twins = twins_of(case.operation, tool=attempt.tool, args_hash=attempt.args_hash)
        named = sorted({twin.operation_id for twin in twins})
        decided = desk.record(DecisionKind.INTENDED_REPEAT, why, twins=named)
        to_review(case, attempt, ReviewReason.APPROVAL_REQUIRED)
        return decided


def _check_new(desk: Desk, corrected_hash: str) -> None:
    tool, attempts = desk.attempt.tool, desk.case.attempts
    known = [a for a in attempts if (a.tool, a.args_hash) == (tool, corrected_hash)]
    number = known[0].number if known else 0
    refuse_unless(not known, "same-arguments", f"These are the arguments of attempt {number} already.")


def _insert_corrected(
    desk: Desk, in_force: InForce, args_bytes: bytes, args: dict[str, Any], args_hash: str
) -> Attempt:
    source = desk.attempt
    if in_force.snapshot is None:
        raise AssertionError("checked before: the policy has a rule")
    return insert_attempt(
        desk.case,
        tool=source.tool,
        args_bytes=args_bytes,
        args=args,
        args_hash=args_hash,
        agent=source.agent,
        policy=in_force.snapshot,
        scopes=source.scopes,
        descends_from=source,
        held_for=ReviewReason.ARGUMENTS_CHANGED,
        requested_by=source.requested_by,
        arguments_by=desk.by,
        actor=source.actor,
        expires_at=source.expires_at,
    )


def _ask_anew(case: Case, attempt: Attempt) -> None:
    """A look-up under way does not ask for the record that was named: its answer is an earlier one's."""
    case.change(attempt, lookup_epoch=attempt.lookup_epoch + 1, lookup_lease_until=None)
    look_again(case, attempt)


def _keep_reference(case: Case, attempt: Attempt, reference: str) -> None:
    """The named record becomes the request id where none is known; an absent from now on contradicts it."""
    named = {"positive_evidence": True}
    if not attempt.provider_request_id:
        case.change(attempt, provider_request_id=reference, **named)
    else:
        case.change(attempt, result_ref=reference, **named)
