"""Who may decide what: permissions of people on tenants, and the scopes in which they may approve."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.postgres.fields import ArrayField
from django.db import models
from guardian.models import UserObjectPermissionBase

from ledger.models import Tenant, User
from ledger.models.base import TenantRow
from ledger.rules.pointers import glob_matches
from ledger.rules.vocabulary import Effect


class TenantPermission(UserObjectPermissionBase):
    """One permission of one person on one tenant. Given to people only, never to groups."""

    content_object = models.ForeignKey(Tenant, models.CASCADE, related_name="person_permissions")

    class Meta(UserObjectPermissionBase.Meta):
        abstract = False


class ApprovalScope(TenantRow):
    """Which new sends may be approved by those who hold `approve_sends` on this scope."""

    tool_glob = models.CharField(max_length=200, default="*")
    effects = ArrayField(models.CharField(max_length=16), default=list)

    class Meta:
        default_permissions = ()
        permissions = (("approve_sends", "May approve new sends within this scope"),)
        constraints = (models.UniqueConstraint("tenant", "tool_glob", "effects", name="approval_scope_once"),)

    def __str__(self) -> str:
        return f"{self.tool_glob} ({', '.join(self.effects) or 'every effect'})"

    def covers(self, tool: str, effect: Effect) -> bool:
        """Does a send of this tool with this effect fall into the scope? No effects listed: every one."""
        return glob_matches(self.tool_glob, tool) and covers_effect(self.effects, effect)


class ApprovalScopePermission(UserObjectPermissionBase):
    """One person's right to approve within one scope."""

    content_object = models.ForeignKey(ApprovalScope, models.CASCADE, related_name="person_permissions")

    class Meta(UserObjectPermissionBase.Meta):
        abstract = False


class PressNonce(models.Model):
    """One press that may be made once, by one person, about one item as it was shown to them."""

    token_hash = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    item_id = models.CharField(max_length=40)
    digest = models.CharField(max_length=200)
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.item_id


def covers_effect(effects: Collection[str], effect: Effect) -> bool:
    """An empty list stands for every effect."""
    return not effects or effect in effects
