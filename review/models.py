"""Who may decide what and whose it is: permissions of people, scopes in which they may approve, the rules of
ownership, and what was done to teams."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from guardian.models import UserObjectPermissionBase

from ledger.models import ReviewGroup, Tenant, User, triggers
from ledger.models.base import TenantRow
from ledger.rules.pointers import glob_matches
from ledger.rules.vocabulary import Effect, ReviewReason
from review.reach import Reach


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


class PasswordLink(models.Model):
    """The one link with which a person may set their password, as an administrator of `tenant` made it. Only
    the hash of its code is kept; a newer one takes its place, and it goes when it is used."""

    person = models.OneToOneField(User, models.CASCADE, related_name="+")
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    made_by = models.ForeignKey(User, models.CASCADE, related_name="+")
    code_hash = models.CharField(max_length=64, unique=True)
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"for {self.person_id} until {self.expires_at:%Y-%m-%d %H:%M}"


class OwnershipVersion(TenantRow):
    """One numbered set of rules of ownership, as somebody saved it; the highest version is in force."""

    version = models.PositiveIntegerField()
    saved_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    saved_at = models.DateTimeField()
    why = models.CharField(max_length=4000)
    reach = models.CharField(max_length=8, choices=[(r, r) for r in Reach])

    class Meta:
        constraints = (models.UniqueConstraint("tenant", "version", name="ownership_version"),)
        triggers = triggers.append_only()


class OwnershipEntry(TenantRow):
    """One rule of a version, at its place from 0; `reason` and `effect` empty: every one; with a
    `destination_glob` it is about dead letters alone."""

    version = models.ForeignKey(OwnershipVersion, models.PROTECT, related_name="entries", db_constraint=False)
    place = models.PositiveSmallIntegerField()
    tool_glob = models.CharField(max_length=200)
    reason = models.CharField(max_length=32, blank=True, choices=[(r, r) for r in ReviewReason])
    effect = models.CharField(max_length=16, blank=True, choices=[(e, e) for e in Effect])
    team = models.ForeignKey(ReviewGroup, models.PROTECT, null=True, related_name="+", db_constraint=False)
    person = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    destination_glob = models.CharField(max_length=200, blank=True, default="", db_default="")

    class Meta:
        constraints = (
            models.UniqueConstraint("version", "place", name="ownership_place"),
            models.CheckConstraint(
                condition=Q(team__isnull=True, person__isnull=False)
                | Q(team__isnull=False, person__isnull=True),
                name="ownership_names_team_or_person",
            ),
        )
        triggers = triggers.append_only()


class TeamChange(TenantRow):
    """One line of what was done to a team, by whom: created, renamed, somebody added or taken out."""

    team = models.ForeignKey(ReviewGroup, models.PROTECT, related_name="changes", db_constraint=False)
    what = models.CharField(max_length=300)
    by = models.ForeignKey(User, models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        triggers = triggers.append_only()


class Absence(TenantRow):
    """One line of when somebody is away from the work of a tenant; the newest one counts. Until then no rule
    gives them anything. `until` None: they are back."""

    person = models.ForeignKey(User, models.PROTECT, related_name="+")
    until = models.DateTimeField(null=True)
    by = models.ForeignKey(User, models.PROTECT, related_name="+")
    why = models.CharField(max_length=4000, blank=True)
    at = models.DateTimeField()

    class Meta:
        indexes = (models.Index("tenant", "person", F("id").desc(), name="absences_newest_first"),)
        triggers = triggers.append_only()

    @classmethod
    def of_owner(cls) -> models.Subquery:
        """Of an item: the end of what was last said of its owner's absence; NULL where they are back, or
        nothing was said."""
        said = cls.objects.filter(tenant=models.OuterRef("tenant_id"), person=models.OuterRef("owner_id"))
        return models.Subquery(said.order_by("-pk").values("until")[:1])


def covers_effect(effects: Collection[str], effect: Effect) -> bool:
    """An empty list stands for every effect."""
    return not effects or effect in effects
