"""Record an intent before anything is sent; the same intent again gives the same attempt."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import IntegrityError, transaction

from ledger.authority import as_stored, key_facts
from ledger.events import agent_actor
from ledger.lifecycle.case import Case, load_case
from ledger.lifecycle.identity import insert_attempt
from ledger.lifecycle.locking import locked_operation
from ledger.lifecycle.parking import join_parked, lock_operation_key
from ledger.lifecycle.rule_changes import follow_rule
from ledger.lifecycle.runs import open_run
from ledger.lifecycle.settling import settle
from ledger.lifecycle.standing import standing_in
from ledger.lifecycle.twins import is_suspected_at_birth
from ledger.lifecycle.values import Intent, IntentAnswer, IntentKind
from ledger.models import ApiKey, Attempt, Operation, Refusal, Run
from ledger.policies import InForce, rule_in_force
from ledger.queries.outcomes import is_variant
from ledger.rules.authority import Now, Reason, Refused, Then, check_authority, covers_target, covers_tool
from ledger.rules.costs import cost_problem
from ledger.rules.policy import Rule, target_of
from ledger.rules.states import State
from ledger.rules.vocabulary import Effect, EventKind, ReviewReason
from ledger.transactions import database_clock, require_transaction

_MOST_KEPT = 20
"""Differing posts of one attempt: an agent may post the same intent for years."""


def record_intent(*, key: ApiKey, intent: Intent) -> IntentAnswer:
    """Commit to what is about to be sent, or answer by what is known of it already.

    Content is compared before state, with every attempt of the operation. Another content under the same key
    never becomes a second live attempt: one held attempt per operation, which a person decides.
    """
    require_transaction()
    key = as_stored(key)
    in_force = rule_in_force(key.tenant_id, intent.tool)
    known = Operation.objects.filter(tenant_id=key.tenant_id, operation_key=intent.operation_key).first()
    reasons = _refused(key, intent, in_force, known=known is not None)
    if reasons:
        return _refuse(key, intent, reasons)
    missing = _missing(intent, in_force.rule) if known is None else None
    if missing:
        return missing
    operation = known or _insert_operation(key, intent)
    if operation is not None and known is None:
        return _create(key, intent, in_force, operation)
    return _answer_again(key, intent, in_force)


def _refused(key: ApiKey, intent: Intent, in_force: InForce, *, known: bool) -> tuple[Reason, ...]:
    """Authority to record at all. For a known operation the policy speaks when its attempt is found: what was
    sent keeps its rule."""
    rule, agent = in_force.rule, key.agent
    target = target_of(rule, intent.args) if rule else None
    then = Then(
        tool=intent.tool,
        target=target,
        effect=rule.effect if rule else Effect.WRITE,
        rule_hash=rule.rule_hash if rule else "",
        idempotent=False,
        expires_at=None,
        with_approval=True,
        resend=False,
        absent_by_lookup=False,
        key_window_ends_at=None,
    )
    now = Now(
        at=database_clock(),
        tenant_active=agent.tenant.is_active,
        agent_active=agent.is_active,
        owner_active=agent.owner.is_active,
        keys=(key_facts(key, intent.tool, target),),
        cancelled=False,
        rule_hash="" if known else in_force.rule_hash,
        max_attempts=1,
        attempts_used=0,
        budget_short=(),
        approval=None,
    )
    answer = check_authority(then, now)
    return answer.reasons if isinstance(answer, Refused) else ()


def _missing(intent: Intent, rule: Rule | None) -> IntentAnswer | None:
    """What a new intent must have before it is stored: arguments where the ledger sends them or reads a cost
    in them, and a cost that can be read where the run pays it."""
    if rule is None:
        return None
    pays = rule.cost is not None and intent.run
    if intent.args_bytes is None and (pays or rule.executor == "ledger"):
        why = "its cost is read from them" if pays else "the ledger itself sends this tool's calls"
        return IntentAnswer(IntentKind.ARGS_REQUIRED, problem=why)
    problem = cost_problem(rule, intent.args) if pays else ""
    return IntentAnswer(IntentKind.COST_UNREADABLE, problem=problem) if problem else None


def _refuse(key: ApiKey, intent: Intent, reasons: tuple[Reason, ...]) -> IntentAnswer:
    Refusal.objects.create(
        tenant_id=key.tenant_id,
        agent=key.agent,
        key_id=key.key_id,
        operation_key=intent.operation_key,
        tool=intent.tool,
        args_hash=intent.args_hash,
        reason=reasons[0],
        at=database_clock(),
    )
    return IntentAnswer(IntentKind.REFUSED, reasons=reasons)


def _insert_operation(key: ApiKey, intent: Intent) -> Operation | None:
    """The new operation, or None where another request made it first."""
    now = database_clock()
    try:
        with transaction.atomic():
            return Operation.objects.create(
                tenant_id=key.tenant_id,
                operation_key=intent.operation_key,
                agent=key.agent,
                run=_run(key, intent.run),
                step=intent.step,
                task_id=intent.task_id,
                retry_of=intent.retry_of,
                created_at=now,
            )
    except IntegrityError:
        return None


def _run(key: ApiKey, name: str) -> Run | None:
    """The named run; one that was never opened has no limits."""
    return open_run(key=key, name=name, limits={}).run if name else None


def _create(key: ApiKey, intent: Intent, in_force: InForce, operation: Operation) -> IntentAnswer:
    case = load_case(operation, agent_actor(key.agent))
    held_for = _held_for(operation, intent, in_force)
    attempt = _insert(case, key, intent, in_force, held_for)
    lock_operation_key(operation.tenant_id, operation.operation_key)
    join_parked(case)
    settle(case)
    held = attempt.state == State.MANUAL_REVIEW
    return IntentAnswer(IntentKind.HELD if held else IntentKind.CREATED, standing_in(case, attempt))


def _held_for(operation: Operation, intent: Intent, in_force: InForce) -> ReviewReason | None:
    """Why a person must see this intent before anything is sent."""
    rule = in_force.rule
    if rule is not None and is_suspected_at_birth(
        operation, rule, tool=intent.tool, args_hash=intent.args_hash
    ):
        return ReviewReason.SUSPECTED_DUPLICATE
    return ReviewReason.APPROVAL_REQUIRED if rule is not None and rule.review == "always" else None


def _insert(
    case: Case, key: ApiKey, intent: Intent, in_force: InForce, held_for: ReviewReason | None
) -> Attempt:
    if in_force.snapshot is None or in_force.rule is None:
        raise AssertionError("an intent without a rule is refused before it is inserted")
    return insert_attempt(
        case,
        tool=intent.tool,
        args_bytes=intent.args_bytes,
        args=intent.args,
        args_hash=intent.args_hash,
        agent=key.agent,
        policy=in_force.snapshot,
        scopes=covering_scopes(key, intent.tool, target_of(in_force.rule, intent.args)),
        held_for=held_for,
        requested_by=intent.requested_by,
        actor=intent.actor,
        expires_at=intent.expires_at,
    )


def covering_scopes(key: ApiKey, tool: str, target: str | None) -> list[str]:
    """Those scopes of a key that cover this tool and target: all that a send of it may ever use."""
    return [scope for scope in sorted(key.scopes) if _covers(scope, tool, target)]


def _covers(scope: str, tool: str, target: str | None) -> bool:
    return covers_tool([scope], tool) or (target is not None and covers_target([scope], target))


def _answer_again(key: ApiKey, intent: Intent, in_force: InForce) -> IntentAnswer:
    known = Operation.objects.get(tenant_id=key.tenant_id, operation_key=intent.operation_key)
    with locked_operation(known.pk, tenant_id=key.tenant_id, actor=agent_actor(key.agent)) as case:
        same = [a for a in case.attempts if (a.tool, a.args_hash) == (intent.tool, intent.args_hash)]
        if not same:
            return _hold_variant(case, key, intent, in_force)
        speaker = case.speaker(same[-1])
        if is_variant(speaker) and speaker.is_held:
            return IntentAnswer(IntentKind.KEY_REUSED, standing_in(case, speaker))
        refused = follow_rule(case, speaker, in_force)
        if refused:
            return _refuse(key, intent, refused)
        _keep_what_differs(case, speaker, intent)
        kind = IntentKind.HELD if speaker.is_held else IntentKind.REPLAYED
        return IntentAnswer(kind, standing_in(case, speaker))


def _keep_what_differs(case: Case, attempt: Attempt, intent: Intent) -> None:
    """What an intent says beside its content makes no second attempt; where it differs it is kept, once."""
    known = _beside_content(case.operation, attempt)
    differs = {name: said for name, said in _said_beside(intent).items() if said and said != known[name]}
    if differs:
        told = [event.data for event in attempt.events.filter(kind=EventKind.POSTED_AGAIN)]
        if {"differs": differs} not in told and len(told) < _MOST_KEPT:
            case.record(EventKind.POSTED_AGAIN, attempt, differs=differs)


def _said_beside(intent: Intent) -> dict[str, str]:
    return {
        "run": intent.run,
        "step": intent.step,
        "task_id": intent.task_id,
        "retry_of": intent.retry_of,
        "actor": intent.actor,
        "requested_by": intent.requested_by.get_username() if intent.requested_by else "",
        "expires_at": _moment(intent.expires_at),
    }


def _beside_content(operation: Operation, attempt: Attempt) -> dict[str, str]:
    return {
        "run": operation.run.name if operation.run else "",
        "step": operation.step,
        "task_id": operation.task_id,
        "retry_of": operation.retry_of,
        "actor": attempt.actor,
        "requested_by": attempt.requested_by.get_username() if attempt.requested_by else "",
        "expires_at": _moment(attempt.expires_at),
    }


def _moment(at: datetime | None) -> str:
    return at.astimezone(UTC).isoformat() if at else ""


def _hold_variant(case: Case, key: ApiKey, intent: Intent, in_force: InForce) -> IntentAnswer:
    """Other content under a known key: held once, further variants are evidence on its item."""
    held = case.held_variant()
    if held is None:
        if in_force.rule is None:
            return _refuse(key, intent, (Reason.POLICY_REFUSED,))
        held = _insert(case, key, intent, in_force, ReviewReason.ARGUMENTS_CHANGED)
    elif not _seen_before(held, intent):
        case.record(EventKind.VARIANT_SEEN, held, tool=intent.tool, args_hash=intent.args_hash)
    return IntentAnswer(IntentKind.KEY_REUSED, standing_in(case, held))


def _seen_before(held: Attempt, intent: Intent) -> bool:
    seen = held.events.filter(kind=EventKind.VARIANT_SEEN)
    return any(event.data["args_hash"] == intent.args_hash for event in seen)
