"""Policy snapshots: publish one, and ask which rule is in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ledger.models import Attempt, PolicySnapshot, Tenant, User
from ledger.queries.arguments import stored_args
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.masks import Veil, veil_of
from ledger.rules.policy import Policy, Rule, parse_policy
from ledger.transactions import database_clock, remembered, require_transaction


@dataclass(frozen=True)
class InForce:
    """What the current policy says of one tool; no rule where it refuses the tool."""

    snapshot: PolicySnapshot | None
    rule: Rule | None

    @property
    def rule_hash(self) -> str | None:
        return self.rule.rule_hash if self.rule else None


def publish_policy(
    *, tenant: Tenant, document: dict[str, Any], by: User | None
) -> tuple[PolicySnapshot, bool]:
    """Number and activate a document. Returns the snapshot in force and whether it is new.

    Raises `ledger.rules.policy.PolicyInvalid`. A document equal to the one in force makes no new version.
    """
    require_transaction()
    parse_policy(document)
    hashed = content_hash(canonical_bytes(document))
    Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
    current = current_snapshot(tenant.pk)
    if current and current.content_hash == hashed:
        return current, False
    snapshot = PolicySnapshot.objects.create(
        tenant=tenant,
        version=current.version + 1 if current else 1,
        document=document,
        content_hash=hashed,
        published_by=by,
        published_at=database_clock(),
    )
    return snapshot, True


@remembered
def current_snapshot(tenant_id: int) -> PolicySnapshot | None:
    """The snapshot in force; None before the first one is published."""
    return PolicySnapshot.objects.filter(tenant_id=tenant_id).order_by("-version").first()


def current_snapshots(tenant_ids: Iterable[int]) -> Mapping[int, PolicySnapshot]:
    """The same for several tenants, by tenant id; none for a tenant without one. One query."""
    newest_first = PolicySnapshot.objects.filter(tenant_id__in=set(tenant_ids)).order_by(
        "tenant_id", "-version"
    )
    return {snapshot.tenant_id: snapshot for snapshot in newest_first.distinct("tenant_id")}


def rule_in_force(tenant_id: int, tool: str) -> InForce:
    """The rule a new intent for this tool would be under."""
    snapshot = current_snapshot(tenant_id)
    return InForce(snapshot, policy_of(snapshot).rule_for(tool) if snapshot else None)


def rule_of(attempt: Attempt) -> Rule:
    """The rule an attempt is under: that of its own snapshot, whatever was published since."""
    rule = policy_of(attempt.policy).rule_for(attempt.tool)
    if rule is None:
        raise AssertionError(f"attempt {attempt.pk} is under a rule that its policy does not hold")
    return rule


def rule_as_shown(attempt: Attempt) -> Rule:
    """The rule an attempt is under, with what it hides and what the rule in force hides now."""
    return hiding_too(rule_of(attempt), rule_in_force(attempt.tenant_id, attempt.tool).rule)


def hiding_too(rule: Rule, other: Rule | None) -> Rule:
    """The rule, hiding what the other one hides as well: a mask is nothing of authority, so that the newest
    holds for older work too."""
    more = tuple(path for path in other.mask if path not in rule.mask) if other else ()
    return replace(rule, mask=rule.mask + more) if more else rule


def veil_over(attempt: Attempt) -> Veil:
    """Hides the masked arguments of an attempt in what others say about it."""
    mask = rule_as_shown(attempt).mask
    return veil_of(stored_args(attempt), mask) if mask else Veil()


def rule_now(attempt: Attempt) -> Rule:
    """The rule in force for its tool, whatever it was sent under; its own where the policy refuses it."""
    return rule_in_force(attempt.tenant_id, attempt.tool).rule or rule_of(attempt)


def rule_of_next_send(attempt: Attempt, in_force: InForce) -> Rule:
    """The rule its next send will be under: the one in force, which an unsent attempt follows and a successor
    is born under. One that was ever held keeps its own until it is sent; so does all, where none is in force.
    """
    keeps_its_own = attempt.held_at is not None and not attempt.was_sent
    return rule_of(attempt) if keeps_its_own or in_force.rule is None else in_force.rule


def policy_of(snapshot: PolicySnapshot) -> Policy:
    """The snapshot as a value. It never changes, so it is parsed once per process."""
    cached = _PARSED.get(snapshot.pk)
    if cached is None or cached[0] != snapshot.content_hash:
        cached = _PARSED[snapshot.pk] = (snapshot.content_hash, parse_policy(snapshot.document))
    return cached[1]


_PARSED: dict[int, tuple[str, Policy]] = {}


def tools_sent_by_the_ledger() -> dict[int, frozenset[str]]:
    """Tenant → the names and globs of its rules, of whatever version, by which the ledger itself sends."""
    found: dict[int, frozenset[str]] = {}
    for pk, tenant_id, hashed in PolicySnapshot.objects.values_list("pk", "tenant_id", "content_hash"):
        if hashed not in _SENT_BY_LEDGER:
            _SENT_BY_LEDGER[hashed] = policy_of(PolicySnapshot.objects.get(pk=pk)).sent_by_the_ledger()
        if _SENT_BY_LEDGER[hashed]:
            found[tenant_id] = found.get(tenant_id, frozenset()) | _SENT_BY_LEDGER[hashed]
    return found


_SENT_BY_LEDGER: dict[str, frozenset[str]] = {}


@dataclass(frozen=True)
class RuleChange:
    """A version that changed the rule of one tool: its id, who published it (None: nobody), and when."""

    policy_id: int
    by_id: int | None
    at: datetime


@remembered
def rule_changes(of: tuple[int, str]) -> tuple[RuleChange, ...]:
    """Every change of a tool's rule in a tenant (`of`: tenant id, tool), oldest first."""
    tenant_id, tool = of
    changes: list[RuleChange] = []
    rule_hash: str | None = None
    for snapshot in PolicySnapshot.objects.filter(tenant_id=tenant_id).order_by("version"):
        rule = policy_of(snapshot).rule_for(tool)
        found = rule.rule_hash if rule else None
        if found != rule_hash:
            rule_hash = found
            changes.append(RuleChange(snapshot.pk, snapshot.published_by_id, snapshot.published_at))
    return tuple(changes)


def rule_since(tenant_id: int, tool: str) -> int:
    """The policy since which the tool's rule is what it is now; 0 where it never had one."""
    changes = rule_changes((tenant_id, tool))
    return changes[-1].policy_id if changes else 0
