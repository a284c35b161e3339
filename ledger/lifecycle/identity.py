"""What a new attempt is born with."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from ledger.approvals import unused_generation
from ledger.lifecycle import items
from ledger.lifecycle.case import Case
from ledger.models import Agent, Attempt, PolicySnapshot, User
from ledger.policies import policy_of
from ledger.rules.keys import idempotency_key
from ledger.rules.masks import masked
from ledger.rules.states import State
from ledger.rules.vocabulary import EventKind, ReviewReason


def insert_attempt(
    case: Case,
    *,
    tool: str,
    args_bytes: bytes | None,
    args: dict[str, Any] | None,
    args_hash: str,
    agent: Agent,
    policy: PolicySnapshot,
    scopes: list[str],
    generation: int | None = None,
    descends_from: Attempt | None = None,
    held_for: ReviewReason | None = None,
    requested_by: User | None = None,
    arguments_by: User | None = None,
    actor: str = "",
    expires_at: datetime | None = None,
    key_first_sent_at: datetime | None = None,
) -> Attempt:
    """Insert the next attempt of a locked operation: INTENT_RECORDED, or held for the given reason.

    `generation` None: other content than before, which the provider must never see under a known key.
    """
    rule = policy_of(policy).rule_for(tool)
    if rule is None:
        raise AssertionError(f"policy {policy.pk} has no rule for {tool}: such an intent is refused")
    operation = case.operation
    if generation is None:
        generation = unused_generation(operation.pk) if case.attempts else 1
    attempt = Attempt.objects.create(
        tenant_id=operation.tenant_id,
        operation=operation,
        number=len(case.attempts) + 1,
        descends_from=descends_from,
        tool=tool,
        args_bytes=args_bytes,
        args=None if args is None else masked(args, rule.mask),
        args_hash=args_hash,
        generation=generation,
        idempotency_key=idempotency_key(str(operation.tenant_id), operation.operation_key, generation),
        agent=agent,
        requested_by=requested_by,
        arguments_by=arguments_by,
        actor=actor,
        expires_at=expires_at,
        created_at=case.now,
        policy=policy,
        rule_hash=rule.rule_hash,
        state=State.MANUAL_REVIEW if held_for else State.INTENT_RECORDED,
        reason=held_for or "",
        held_at=case.now if held_for else None,
        entered_state_at=case.now,
        start_by=None if held_for else expires_at or case.now + timedelta(seconds=rule.start_within_s),
        scopes=scopes,
        key_first_sent_at=key_first_sent_at,
    )
    case.attempts.append(attempt)
    case.moved = True
    _record_birth(case, attempt, held_for)
    return attempt


def _record_birth(case: Case, attempt: Attempt, held_for: ReviewReason | None) -> None:
    """The intent is the first event of every attempt; a held one has its second at once."""
    case.record(
        EventKind.INTENT,
        attempt,
        to=State.INTENT_RECORDED,
        number=attempt.number,
        tool=attempt.tool,
        args_hash=attempt.args_hash,
        policy=attempt.policy.version,
        rule_hash=attempt.rule_hash,
        descends_from=attempt.descends_from_id,
    )
    if held_for:
        case.record(
            EventKind.HELD,
            attempt,
            **{"from": State.INTENT_RECORDED, "to": State.MANUAL_REVIEW, "reason": held_for},
        )
        items.open_or_change(case, attempt, held_for)
