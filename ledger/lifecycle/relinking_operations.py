"""Relink an attempt to another operation: what became of that one answers for it, and is left as it was."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from ledger.lifecycle.case import Case, load_case
from ledger.lifecycle.deciding import Desk, at_the_desk, refuse_unless
from ledger.lifecycle.identity import insert_attempt
from ledger.lifecycle.moves import move
from ledger.lifecycle.parking import join_parked, lock_operation_key
from ledger.lifecycle.possible import check_possible
from ledger.lifecycle.settling import settle
from ledger.lifecycle.values import Decided, DecisionRefused
from ledger.models import Attempt, Operation, ReviewItem, User
from ledger.policies import rule_in_force
from ledger.rules.budgets import How
from ledger.rules.states import Outcome, State
from ledger.rules.vocabulary import DecisionKind, ReviewReason
from ledger.transactions import require_transaction

LONGEST_KEY = 255


def relink_operation(*, item_id: str, by: User, why: str, target_key: str, new: bool = False) -> Decided:
    """The attempt becomes SUPERSEDED and its operation mirrors the one of `target_key`, unless another of its
    attempts counts. A sent attempt goes only to an operation that was sent or is confirmed; a held one also
    to a `new` key, opened here with one held attempt. Raises `DecisionRefused`.
    """
    target = _lock_both(item_id, target_key)
    with at_the_desk(item_id, by) as desk:
        check_possible(desk, DecisionKind.RELINK_OPERATION)
        target = _new_target(desk, target_key) if new else _known_target(desk, target)
        attempt = desk.attempt
        decided = desk.record(
            DecisionKind.RELINK_OPERATION, why, target=target.pk, target_key=target.operation_key, new=new
        )
        said = {"relinked_to": target.pk}
        move(desk.case, attempt, State.SUPERSEDED, how=How.RELINK, relinked_to=target, said=said)
        if new:
            _open(desk.case, attempt, target)
        return decided


def _lock_both(item_id: str, target_key: str) -> Operation | None:
    """Both operations, by id, before anything else of either: two that are relinked to each other at once
    are a queue."""
    require_transaction()
    source = ReviewItem.objects.filter(pk=item_id).values_list("operation_id", "tenant_id").first()
    if source is None:
        return None
    found = Operation.objects.filter(tenant_id=source[1], operation_key=target_key).first()
    both = Operation.objects.filter(pk__in=[source[0], *([found.pk] if found else [])])
    locked = {operation.pk: operation for operation in both.order_by("pk").select_for_update()}
    return locked.get(found.pk) if found else None


def _known_target(desk: Desk, target: Operation | None) -> Operation:
    if target is None:
        raise DecisionRefused("target-unknown", "This tenant has no operation under that key.")
    attempts = list(target.attempts.order_by("number"))
    refuse_unless(target.pk != desk.attempt.operation_id, "target-itself", "This is its own operation.")
    refuse_unless(
        any(attempt.tool == desk.attempt.tool for attempt in attempts),
        "target-tool",
        "That operation is of another tool.",
    )
    refuse_unless(
        target.outcome != Outcome.RELINKED and attempts[-1].relinked_to_id is None,
        "target-relinked",
        "That operation is relinked itself: name the one it leads to.",
    )
    refuse_unless(not _leads_to(target.pk, desk.attempt.operation_id), "target-cycle", "It leads back here.")
    refuse_unless(
        not desk.attempt.was_sent or any(_may_have_been_sent(attempt) for attempt in attempts),
        "target-unsent",
        "This was sent, and nothing of that operation ever was.",
    )
    return target


def _may_have_been_sent(attempt: Attempt) -> bool:
    return attempt.was_sent or attempt.state == State.OUTCOME_CONFIRMED


def _leads_to(start: str, wanted: str) -> bool:
    """Does any relink of the first operation, or of those it leads to, end at the other?"""
    seen, ahead = {start}, {start}
    while ahead:
        relinked = Attempt.objects.filter(operation_id__in=ahead, relinked_to__isnull=False)
        ahead = set(relinked.values_list("relinked_to_id", flat=True)) - seen
        seen |= ahead
    return wanted in seen


def _new_target(desk: Desk, key: str) -> Operation:
    refuse_unless(
        not desk.attempt.was_sent,
        "target-unknown",
        "This was sent: it can only belong to what exists already.",
    )
    refuse_unless(
        key.isprintable() and 0 < len(key) <= LONGEST_KEY,
        "target-unreadable",
        f"An operation key is 1 to {LONGEST_KEY} printable characters.",
    )
    source = desk.case.operation
    try:
        with transaction.atomic():
            return Operation.objects.create(
                tenant_id=source.tenant_id,
                operation_key=key,
                agent=source.agent,
                run=source.run,
                step=source.step,
                task_id=source.task_id,
                created_at=desk.case.now,
            )
    except IntegrityError:
        raise DecisionRefused("target-known", "An operation under that key exists already.") from None


def _open(source: Case, attempt: Attempt, target: Operation) -> None:
    """The new operation's one attempt is held: the same content, under the rule in force, for an approval of
    its own."""
    in_force = rule_in_force(target.tenant_id, attempt.tool)
    if in_force.snapshot is None:
        raise AssertionError("checked before: the policy has a rule")
    case = load_case(target, source.actor)
    insert_attempt(
        case,
        tool=attempt.tool,
        args_bytes=attempt.canonical_args,
        args=attempt.args,
        args_hash=attempt.args_hash,
        agent=attempt.agent,
        policy=in_force.snapshot,
        scopes=attempt.scopes,
        held_for=ReviewReason.APPROVAL_REQUIRED,
        requested_by=attempt.requested_by,
        arguments_by=attempt.arguments_by,
        actor=attempt.actor,
        expires_at=attempt.expires_at,
    )
    lock_operation_key(target.tenant_id, target.operation_key)
    join_parked(case)
    settle(case)
