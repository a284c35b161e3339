"""What `fsck` found, run by run. Of no tenant: the findings name theirs."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from ledger.models import triggers


class FsckForm(models.TextChoices):
    WHOLE = "whole"
    TOUCHED = "touched"  # only operations written to since the last clean run


class FsckRun(models.Model):
    """One run to its end. `snapshot` is what it saw, as PostgreSQL writes it, in the cluster `system`."""

    form = models.CharField(max_length=8, choices=FsckForm.choices)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    operations = models.PositiveBigIntegerField(null=True)  # looked at; null: every one
    invariants = models.PositiveIntegerField()
    findings_count = models.PositiveBigIntegerField()
    findings = models.JSONField(default=list)  # the first of each tenant
    counts = models.JSONField(default=dict)  # findings by tenant, "" for the system's
    slowest = models.JSONField(default=dict)  # seconds by check, of the slowest
    snapshot = models.TextField()
    system = models.CharField(max_length=24)

    class Meta:
        indexes = (
            models.Index("form", F("started_at").desc(), name="fsck_runs_by_age"),
            models.Index(F("started_at").desc(), condition=Q(findings_count=0), name="clean_fsck_runs"),
        )
        triggers = (
            triggers.never_changed(),
            triggers.kept_for("started_at", days=7),
            triggers.never_truncated(),
        )

    def __str__(self) -> str:
        return f"{self.form} {self.started_at:%Y-%m-%d %H:%M:%S}"
