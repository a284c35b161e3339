"""Gather the facts then and now of one attempt, and ask the one pure function of authority."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q

from ledger.approvals import approval_facts
from ledger.budgets import why_short
from ledger.models import Agent, ApiKey, Approval, Attempt, Operation
from ledger.policies import rule_in_force, rule_now, rule_of
from ledger.queries.arguments import stored_args
from ledger.rules.authority import (
    NO_APPROVAL,
    Allowed,
    ApprovalFacts,
    KeyFacts,
    Now,
    Refused,
    Then,
    check_authority,
    covers_target,
    covers_tool,
    is_usable,
)
from ledger.rules.key_window import KeyWindow, key_window
from ledger.rules.policy import Rule, target_of
from ledger.rules.states import State
from ledger.transactions import remembered, require_transaction


def authority_for_leave(
    operation: Operation,
    attempt: Attempt,
    *,
    keys: Sequence[ApiKey],
    approval: Approval | ApprovalFacts | None,
    needs_approval: bool,
    now: datetime,
    replay: bool = False,
) -> Allowed | Refused:
    """May these keys (of several the best one speaks) have leave for this attempt at `now`?

    `replay`: leave was given, so that what it used up (budget, approval, attempts) is left aside.
    """
    then = facts_then(attempt, with_approval=needs_approval or replay)
    facts = facts_now(
        operation,
        attempt,
        keys=keys,
        now=now,
        approval=_approval_facts(approval, keys[0].agent if keys else attempt.agent, now, replay=replay),
        ask_budget=not replay,
    )
    return check_authority(then, facts)


def _approval_facts(
    approval: Approval | ApprovalFacts | None, sender: Agent, now: datetime, *, replay: bool
) -> ApprovalFacts | None:
    """Leave must always pass one: without an approval at hand, one that covers nothing."""
    if replay:
        return None
    if isinstance(approval, Approval):
        return approval_facts(approval, sender=sender, now=now)
    return approval or NO_APPROVAL


def authority_to_approve(operation: Operation, attempt: Attempt, *, now: datetime) -> Allowed | Refused:
    """Could a new send of this attempt be approved at `now`? Of the agent's keys the best one speaks."""
    then = facts_then(attempt, with_approval=True)
    facts = facts_now(operation, attempt, keys=keys_of(attempt.agent), now=now, approval=None)
    return check_authority(then, facts)


def authority_after_absent(operation: Operation, attempt: Attempt, *, now: datetime) -> Allowed | Refused:
    """Could it be sent again without approval, if a look-up proved at `now` that nothing happened? Its own
    reservation would be given back then, so its budget is not asked."""
    then = facts_then(attempt, with_approval=False, after_absent=True)
    facts = facts_now(
        operation, attempt, keys=keys_of(attempt.agent), now=now, approval=None, ask_budget=False
    )
    return check_authority(then, facts)


def facts_then(attempt: Attempt, *, with_approval: bool, after_absent: bool = False) -> Then:
    """What the attempt says about itself. `after_absent`: asked as if a look-up had just proven it absent."""
    rule = rule_of(attempt)
    return Then(
        tool=attempt.tool,
        target=target_of(rule, stored_args(attempt)),
        effect=rule.effect,
        rule_hash=attempt.rule_hash,
        idempotent=rule.idempotent,
        expires_at=attempt.expires_at,
        with_approval=with_approval,
        resend=attempt.was_sent,
        absent_by_lookup=attempt.absent_by_lookup or after_absent or _repeats_unproven(attempt),
        key_window_ends_at=key_window_ends_at(attempt, rule),
    )


def _repeats_unproven(attempt: Attempt) -> bool:
    """Was an earlier send replaced of which nothing but an *absent* said that it had no effect, or nothing at
    all? Whatever is proven of later ones, its effect is the one that would happen twice."""
    if attempt.number == 1:
        return False
    replaced = attempt.operation.attempts.filter(number__lt=attempt.number, state=State.SUPERSEDED)
    unproven = Q(failure="") | Q(absent_by_lookup=True) | Q(success_reported=True) | Q(positive_evidence=True)
    sent = Q(dispatched_at__isnull=False) | Q(maybe_sent=True)
    return replaced.filter(sent, unproven).exists()


def facts_now(
    operation: Operation,
    attempt: Attempt,
    *,
    keys: Sequence[ApiKey],
    now: datetime,
    approval: ApprovalFacts | None,
    ask_budget: bool = True,
) -> Now:
    """What holds at `now`, read after the last lock."""
    agent = Agent.objects.select_related("owner", "tenant").get(pk=attempt.agent_id)
    in_force = rule_in_force(attempt.tenant_id, attempt.tool)
    rule = in_force.rule or rule_of(attempt)
    target = target_of(rule, stored_args(attempt))
    return Now(
        at=now,
        tenant_active=agent.tenant.is_active,
        agent_active=agent.is_active and all(key.agent.is_active for key in keys),
        owner_active=agent.owner.is_active,
        keys=tuple(key_facts(key, attempt.tool, target) for key in keys),
        cancelled=operation.cancelled_at is not None,
        rule_hash=in_force.rule_hash,
        max_attempts=rule.max_attempts,
        attempts_used=sends_of(operation),
        budget_short=why_short(operation.run_id, attempt, rule) if ask_budget else (),
        approval=approval,
    )


def hold_authority(attempt: Attempt, key: ApiKey | None) -> None:
    """Keep tenant (and with it the policy), agents, their owners and keys as they are until the transaction
    ends: who takes one back waits for this leave, or this leave sees it taken back."""
    require_transaction()
    agents = {attempt.agent_id} | ({key.agent_id} if key else set())
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [list(agents)])


_HOLD = """
    SELECT 1 FROM ledger_agent agent
    JOIN ledger_tenant tenant ON tenant.id = agent.tenant_id
    JOIN ledger_user owner ON owner.id = agent.owner_id
    JOIN ledger_apikey key ON key.agent_id = agent.id
    WHERE agent.id = ANY(%s)
    FOR SHARE
"""


def as_stored(key: ApiKey) -> ApiKey:
    """The key as it is now: since it was authenticated, a lock may have kept its caller waiting."""
    return ApiKey.objects.select_related("agent__owner", "agent__tenant").get(pk=key.pk)


def key_facts(key: ApiKey, tool: str, target: str | None) -> KeyFacts:
    """One key, seen from one tool and target."""
    return KeyFacts(
        revoked=key.revoked_at is not None,
        expires_at=key.expires_at,
        covers_tool=covers_tool(key.scopes, tool),
        covers_target=covers_target(key.scopes, target),
    )


def key_window_of(attempt: Attempt, rule: Rule, now: datetime) -> KeyWindow:
    """Until when the provider knows a repetition of this attempt for one, as it stands at `now`."""
    return key_window(
        idempotent=rule.idempotent,
        key_ttl_s=rule.key_ttl_s,
        first_sent_at=attempt.key_first_sent_at,
        generation=attempt.generation,
        now=now,
    )


def key_window_ends_at(attempt: Attempt, rule: Rule) -> datetime | None:
    """Until when the provider honours this attempt's key; None where it honours none or nothing was sent."""
    if not rule.idempotent or attempt.key_first_sent_at is None:
        return None
    return attempt.key_first_sent_at + timedelta(seconds=rule.key_ttl_s)


@remembered
def keys_of(agent: Agent) -> list[ApiKey]:
    """The keys with which an agent may ask for leave, oldest first: one that may only read sends nothing."""
    asking = agent.keys.filter(verbs__contains=["ingest"])
    return list(asking.select_related("agent").order_by("created_at", "pk"))


def usable_keys(attempt: Attempt, keys: Sequence[ApiKey], now: datetime) -> list[ApiKey]:
    """Those keys that are live and cover tool and target of the attempt."""
    rule = rule_now(attempt)
    target = target_of(rule, stored_args(attempt))
    return [key for key in keys if is_usable(key_facts(key, attempt.tool, target), now)]


@remembered
def sends_of(operation: Operation) -> int:
    """How many attempts of the operation were given leave."""
    return operation.attempts.filter(dispatched_at__isnull=False).count()
