"""Policies as they were published: which rule a tool was under, who had last changed it, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ledger.models import PolicySnapshot
from ledger.rules.policy import Policy, Rule, parse_policy


@dataclass(frozen=True)
class _Published:
    snapshot: PolicySnapshot
    policy: Policy


class PublishedRules:
    """Each policy is read and parsed once, and only of tenants that are asked about."""

    def __init__(self) -> None:
        self._by_tenant: dict[int, dict[int, _Published]] = {}
        self._editors: dict[tuple[int, str], dict[int, int | None]] = {}

    def rule(self, tenant_id: int, policy_id: int, tool: str) -> Rule | None:
        """The rule this policy holds for the tool; None where it refuses the tool or is not of the tenant."""
        published = self._of(tenant_id).get(policy_id)
        return published.policy.rule_for(tool) if published else None

    def editor(self, tenant_id: int, policy_id: int, tool: str) -> int | None:
        """Who had last changed the tool's rule when this policy was in force."""
        key = (tenant_id, tool)
        if key not in self._editors:
            self._editors[key] = self._editors_of(tenant_id, tool)
        return self._editors[key].get(policy_id)

    def editors_since(self, tenant_id: int, tool: str, since: datetime, until: datetime) -> set[int | None]:
        """Who changed the tool's rule between these times."""
        editors: set[int | None] = set()
        rule_hash: str | None = None
        for published in self._of(tenant_id).values():
            rule = published.policy.rule_for(tool)
            found = rule.rule_hash if rule else None
            if found != rule_hash and since < published.snapshot.published_at <= until:
                editors.add(published.snapshot.published_by_id)
            rule_hash = found
        return editors

    def in_force(self, tenant_id: int, at: datetime, *, not_before: int) -> int:
        """The policy in force at that time, or the one of `not_before` where that is newer."""
        policies = self._of(tenant_id)
        until = [pk for pk, published in policies.items() if published.snapshot.published_at <= at]
        if not_before not in policies:
            return until[-1] if until else not_before
        newest = policies[not_before].snapshot.version
        later = [pk for pk in until if policies[pk].snapshot.version > newest]
        return later[-1] if later else not_before

    def _editors_of(self, tenant_id: int, tool: str) -> dict[int, int | None]:
        editors: dict[int, int | None] = {}
        editor: int | None = None
        rule_hash: str | None = None
        for pk, published in self._of(tenant_id).items():
            rule = published.policy.rule_for(tool)
            found = rule.rule_hash if rule else None
            if found != rule_hash:
                rule_hash, editor = found, published.snapshot.published_by_id
            editors[pk] = editor
        return editors

    def _of(self, tenant_id: int) -> dict[int, _Published]:
        """By id, oldest first."""
        if tenant_id not in self._by_tenant:
            self._by_tenant[tenant_id] = {
                snapshot.pk: _Published(snapshot, parse_policy(snapshot.document))
                for snapshot in PolicySnapshot.objects.filter(tenant_id=tenant_id).order_by("version")
            }
        return self._by_tenant[tenant_id]
