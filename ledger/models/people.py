"""Tenants, people, and the programs that act for them."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models

from ledger.models import triggers
from ledger.models.base import TenantRow


class User(AbstractUser):
    """A person who signs in. Rights are object permissions alone: the superuser flag decides nothing."""


class Tenant(models.Model):
    """The wall: nothing crosses it."""

    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=200)
    suspended_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        default_permissions = ()
        permissions = (
            ("view_work", "May see the tenant's operations and review items"),
            ("decide_work", "May claim, re-check, confirm, reject and relink"),
            ("administer", "May assign ownership and manage policies, keys, destinations and people"),
            ("audit", "May read everything and change nothing"),
        )

    def __str__(self) -> str:
        return self.slug

    @property
    def is_active(self) -> bool:
        return self.suspended_at is None


class ReviewGroup(TenantRow):
    """A group of people who own review items together; the first one of a tenant owns them from birth."""

    name = models.CharField(max_length=100)
    is_first_owner = models.BooleanField(default=False)
    members = models.ManyToManyField(User, related_name="review_groups", blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint("tenant", "name", name="review_group_name"),
            models.UniqueConstraint(
                "tenant", condition=models.Q(is_first_owner=True), name="one_first_owner"
            ),
        )

    def __str__(self) -> str:
        return self.name


class Agent(TenantRow):
    """A program that posts attempts, owned by a person. Identity is the agent: its keys come and go."""

    name = models.CharField(max_length=100)
    owner = models.ForeignKey(User, models.PROTECT, related_name="owned_agents")
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint("tenant", "name", name="agent_name"),)

    def __str__(self) -> str:
        return self.name


class ApiKey(TenantRow):
    """One key of an agent: shown once, stored hashed, scoped, expiring, revocable."""

    key_id = models.CharField(max_length=32, unique=True)
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="keys", db_constraint=False)
    secret_hash = models.CharField(max_length=64)
    verbs = ArrayField(models.CharField(max_length=16))
    scopes = ArrayField(models.CharField(max_length=200))  # tool:GLOB, target:GLOB
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        triggers = (
            triggers.fixed_columns("tenant_id", "key_id", "agent_id", "secret_hash", "created_at"),
            triggers.set_once("revoked_at"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )

    def __str__(self) -> str:
        return self.key_id
