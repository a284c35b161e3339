"""Policy snapshots and providers: what is configured, never what happened."""

from __future__ import annotations

from django.db import models

from ledger.models import triggers
from ledger.models.base import TenantRow
from ledger.models.people import User


class PolicySnapshot(TenantRow):
    """An immutable numbered document of rules per tool; the highest version of a tenant is in force."""

    version = models.PositiveIntegerField()
    document = models.JSONField()
    content_hash = models.CharField(max_length=80)
    published_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    published_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint("tenant", "version", name="policy_version"),)
        triggers = triggers.append_only()


class Provider(TenantRow):
    """How to ask one provider what became of a request. Secrets are named here, never stored.

    `refused_credential`: the name of the one it does not take, or that sees nothing there; somebody has to
    mend that, since `credential_refused_since`.
    """

    name = models.CharField(max_length=100)
    adapter = models.CharField(max_length=50)
    config = models.JSONField()
    failures = models.PositiveIntegerField(default=0)
    unavailable_since = models.DateTimeField(null=True, blank=True)
    last_answer_at = models.DateTimeField(null=True, blank=True)
    refused_credential = models.CharField(max_length=100, blank=True, default="", db_default="")
    credential_refused_since = models.DateTimeField(null=True, blank=True)
    probe_at = models.DateTimeField(null=True, blank=True)  # while unavailable, nobody asks it before

    class Meta:
        constraints = (models.UniqueConstraint("tenant", "name", name="provider_name"),)

    def __str__(self) -> str:
        return self.name
