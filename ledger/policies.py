"""Policy snapshots: publish one, and ask which rule is in force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ledger.models import Attempt, PolicySnapshot, Tenant, User
from ledger.rules.canonical import canonical_bytes, content_hash
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


def policy_of(snapshot: PolicySnapshot) -> Policy:
    """The snapshot as a value. It never changes, so it is parsed once per process."""
    cached = _PARSED.get(snapshot.pk)
    if cached is None or cached[0] != snapshot.content_hash:
        cached = _PARSED[snapshot.pk] = (snapshot.content_hash, parse_policy(snapshot.document))
    return cached[1]


_PARSED: dict[int, tuple[str, Policy]] = {}


def rule_editor(tenant_id: int, tool: str) -> int | None:
    """Who last changed the rule in force for this tool; None where no person did."""
    editor: int | None = None
    rule_hash: str | None = None
    for snapshot in PolicySnapshot.objects.filter(tenant_id=tenant_id).order_by("version"):
        rule = policy_of(snapshot).rule_for(tool)
        found = rule.rule_hash if rule else None
        if found != rule_hash:
            rule_hash, editor = found, snapshot.published_by_id
    return editor
