"""What held when the attempt was made against what holds now: the very facts the write path asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from ledger.authority import facts_now, facts_then, keys_of
from ledger.budgets import accounts_of
from ledger.models import ApiKey, Attempt, BudgetAccount, Operation
from ledger.policies import InForce, hiding_too, rule_in_force, rule_now
from ledger.queries.arguments import stored_args
from ledger.rules.amounts import COUNTED, Amount, amount_text
from ledger.rules.authority import AUTHORITY_WORDS, ApprovalFacts, Now, Reason, Refused, Then, check_authority
from ledger.rules.costs import CostUnreadable, cost_of, is_cost_masked
from ledger.rules.masks import MASKED, hides
from ledger.rules.policy import Rule
from review.queries.arguments import changes_between
from review.queries.page import FieldChange, ThenNow
from review.queries.words import plain


@dataclass(frozen=True)
class Standpoint:
    """An attempt with the facts of its authority, its rule, and the rule in force now."""

    attempt: Attempt
    operation: Operation
    rule: Rule
    in_force: InForce
    keys: Sequence[ApiKey]
    then: Then
    now: Now
    limited: Sequence[BudgetAccount]
    costs: str

    @property
    def refused(self) -> tuple[Reason, ...]:
        """What stands against a new send with approval, now."""
        return _reasons(self.then, self.now)

    @property
    def refused_unapproved(self) -> tuple[Reason, ...]:
        """What would stand against one without approval, after a look-up that found nothing."""
        return _reasons(replace(self.then, with_approval=False, absent_by_lookup=True), self.now)

    def refused_with(self, approval: ApprovalFacts) -> tuple[Reason, ...]:
        """What stands against the send that this approval was given for."""
        return _reasons(self.then, replace(self.now, approval=approval))


def _reasons(then: Then, now: Now) -> tuple[Reason, ...]:
    answer = check_authority(then, now)
    return answer.reasons if isinstance(answer, Refused) else ()


def standpoint_of(attempt: Attempt, *, rule: Rule, now: datetime) -> Standpoint:
    """Gather the facts of one attempt; its operation, agent, owner and tenant are loaded with it."""
    operation = attempt.operation
    keys = keys_of(attempt.agent)
    return Standpoint(
        attempt=attempt,
        operation=operation,
        rule=rule,
        in_force=rule_in_force(attempt.tenant_id, attempt.tool),
        keys=keys,
        then=facts_then(attempt, with_approval=True),
        now=facts_now(operation, attempt, keys=keys, now=now, approval=None),
        limited=_limited(operation.run_id),
        costs=_costs(attempt, rule_now(attempt)) if operation.run_id else "",
    )


def _limited(run_id: int | None) -> Sequence[BudgetAccount]:
    """The accounts with a limit, what the ledger counts before money."""
    accounts = () if run_id is None else accounts_of(run_id)
    limited = [account for account in accounts if account.limit is not None]
    return sorted(limited, key=lambda account: (account.unit not in COUNTED, account.unit))


def _costs(attempt: Attempt, rule: Rule) -> str:
    """What one send takes, where that is more than a call; empty where it is not."""
    if rule.cost is None:
        return ""
    if is_cost_masked(rule):
        return MASKED
    try:
        cost = cost_of(rule, stored_args(attempt))
    except CostUnreadable as problem:
        return f"what cannot be read: {problem}"
    money = [_amount(amount, unit) for unit, amount in cost.items() if unit not in COUNTED]
    return ", ".join(money) or "no money"


def then_now_rows(seen: Standpoint) -> tuple[ThenNow, ...]:
    """One row for each fact, always the same rows in the same order."""
    refused = frozenset((*seen.refused, *(seen.refused_unapproved if seen.attempt.was_sent else ())))
    return tuple(_row(line, seen, refused) for line in _LINES)


def policy_changes(seen: Standpoint) -> tuple[FieldChange, ...]:
    """The fields of the tool's rule that changed since the attempt's own policy."""
    if seen.in_force.rule is None or seen.in_force.rule == seen.rule:
        return ()
    return changes_between(_plain(seen.rule), _plain(seen.in_force.rule))


@dataclass(frozen=True)
class _Line:
    name: str
    reasons: tuple[Reason, ...]
    then: str | Callable[[Standpoint], str]
    now: Callable[[Standpoint], str]


def _row(line: _Line, seen: Standpoint, refused: frozenset[Reason]) -> ThenNow:
    against = [reason for reason in line.reasons if reason in refused]
    changed = line.name == "Policy" and not against and _rule_changed(seen)
    words = " ".join(AUTHORITY_WORDS[reason] for reason in against)
    if changed:
        words = "The rule changed since: a new send needs approval under the current one."
    elif Reason.KEY_WINDOW_OVER in against:
        words = f"A repeat may be a second effect: {_unprotected(seen)}."
    elif Reason.BUDGET_EXHAUSTED in against:
        words = f"{words} {'; '.join(seen.now.budget_short)}."
    return ThenNow(
        name=line.name,
        then=line.then if isinstance(line.then, str) else line.then(seen),
        now=line.now(seen),
        ok=not against and not changed,
        words=words or "As it was.",
        reasons=tuple(against),
        refuses=any(reason in seen.refused for reason in against),
    )


def _unprotected(seen: Standpoint) -> str:
    return "the provider has forgotten the key" if seen.then.idempotent else "the provider keeps no keys"


def _rule_changed(seen: Standpoint) -> bool:
    return seen.in_force.rule_hash != seen.attempt.rule_hash


def _policy_now(seen: Standpoint) -> str:
    version = f"version {seen.in_force.snapshot.version}" if seen.in_force.snapshot else "none"
    return version if seen.in_force.rule else f"{version}, refuses the tool"


def _keys_now(seen: Standpoint) -> str:
    live = [key for key in seen.keys if key.revoked_at is None and key.expires_at > seen.now.at]
    if not live:
        return "no live key"
    return f"{len(live)} live: " + ", ".join(sorted({scope for key in live for scope in key.scopes}))


def _active(active: bool) -> str:  # noqa: FBT001
    return "active" if active else "not active"


def _moment(moment: datetime | None, otherwise: str) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else otherwise


def _target_then(seen: Standpoint) -> str:
    if seen.then.target is None:
        return "none named"
    mask = hiding_too(seen.rule, seen.in_force.rule).mask
    return MASKED if hides(mask, seen.rule.target or "") else seen.then.target or "missing"


def _target_now(seen: Standpoint) -> str:
    if seen.then.target is None:
        return "none named"
    return "not covered by a live key" if Reason.TARGET_REFUSED in seen.refused else "covered"


def _window_now(seen: Standpoint) -> str:
    ends_at = seen.then.key_window_ends_at
    if not seen.then.resend:
        return "not sent yet"
    if ends_at is None:
        return "the provider keeps no keys"
    return f"{'open' if ends_at > seen.now.at else 'over'}, ends {_moment(ends_at, '')}"


def _budget_then(seen: Standpoint) -> str:
    limits = (_amount(account.limit, account.unit) for account in seen.limited)
    return ", ".join(f"at most {limit}" for limit in limits) or "no limit"


def _budget_now(seen: Standpoint) -> str:
    left = ", ".join(
        f"{amount_text(account.left or 0)} of {_amount(account.limit, account.unit)} left"
        for account in seen.limited
    )
    takes = f"; a send takes {seen.costs}" if seen.costs else ""
    return f"{left or 'no limit'}{takes}"


def _amount(amount: Amount | None, unit: str) -> str:
    return f"{amount_text(amount or 0)} {plain(unit)}"


_LINES: tuple[_Line, ...] = (
    _Line(
        "Policy",
        (Reason.POLICY_REFUSED, Reason.POLICY_CHANGED),
        lambda seen: f"version {seen.attempt.policy.version}",
        _policy_now,
    ),
    _Line(
        "Tenant",
        (Reason.TENANT_SUSPENDED,),
        "active",
        lambda seen: "active" if seen.now.tenant_active else "suspended",
    ),
    _Line(
        "Agent",
        (Reason.AGENT_INACTIVE,),
        lambda seen: seen.attempt.agent.name,
        lambda seen: f"{seen.attempt.agent.name}, {_active(seen.now.agent_active)}",
    ),
    _Line(
        "Owner of the agent",
        (Reason.OWNER_INACTIVE,),
        "active",
        lambda seen: f"{seen.attempt.agent.owner.get_username()}, {_active(seen.now.owner_active)}",
    ),
    _Line(
        "Scope",
        (Reason.KEY_REVOKED, Reason.KEY_EXPIRED, Reason.SCOPE_REFUSED),
        lambda seen: ", ".join(seen.attempt.scopes) or "none recorded",
        _keys_now,
    ),
    _Line(
        "Target",
        (Reason.TARGET_REFUSED,),
        _target_then,
        _target_now,
    ),
    _Line(
        "Expiry",
        (Reason.EXPIRED,),
        lambda seen: _moment(seen.attempt.expires_at, "none"),
        lambda seen: "passed" if Reason.EXPIRED in seen.refused else "not passed",
    ),
    _Line(
        "Cancellation",
        (Reason.OPERATION_CANCELLED,),
        "not cancelled",
        lambda seen: _moment(seen.operation.cancelled_at, "not cancelled"),
    ),
    _Line(
        "Key window",
        (Reason.KEY_WINDOW_OVER,),
        lambda seen: f"{seen.rule.key_ttl_s:g} s" if seen.rule.idempotent else "the provider keeps no keys",
        _window_now,
    ),
    _Line(
        "Attempts",
        (Reason.ATTEMPTS_USED_UP,),
        lambda seen: f"at most {seen.rule.max_attempts}",
        lambda seen: f"{seen.now.attempts_used} sent of at most {seen.now.max_attempts}",
    ),
    _Line(
        "Budget",
        (Reason.BUDGET_EXHAUSTED,),
        _budget_then,
        _budget_now,
    ),
)


def _plain(rule: Rule) -> dict[str, object]:
    """The rule's fields as a document; what follows by default is written out."""
    fields = asdict(rule) | {
        "approvals": rule.needed_approvals,
        "approval_ttl_s": rule.vote_life_s,
        "mask": list(rule.mask),
    }
    return {name: value for name, value in fields.items() if value is not None}
