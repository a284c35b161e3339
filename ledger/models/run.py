"""Runs, their budgets and checkpoints: the limits that survive a resume."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from ledger.models import triggers
from ledger.models.base import TenantRow


class Run(TenantRow):
    """The workflow an operation belongs to, by the name its agent gives it."""

    name = models.CharField(max_length=255)
    created_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint("tenant", "name", name="run_name"),)
        triggers = (
            triggers.fixed_columns("tenant_id", "name", "created_at"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )


class BudgetUnit(models.TextChoices):
    TOOL_CALLS = "tool_calls"
    TURNS = "turns"
    TOKENS = "tokens"


class BudgetAccount(TenantRow):
    """What one run may use of one unit, and what it has used; no limit where `limit` is null."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="accounts", db_constraint=False)
    unit = models.CharField(max_length=16, choices=BudgetUnit.choices)
    limit = models.BigIntegerField(null=True)
    reserved = models.BigIntegerField(default=0)
    spent = models.BigIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint("run", "unit", name="one_account_per_unit"),
            models.CheckConstraint(condition=Q(reserved__gte=0, spent__gte=0), name="budget_not_negative"),
            models.CheckConstraint(
                condition=Q(limit__isnull=True) | Q(limit__gte=0), name="limit_not_negative"
            ),
        )
        triggers = (
            triggers.fixed_columns("tenant_id", "run_id", "unit", "limit"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )

    @property
    def left(self) -> int | None:
        return None if self.limit is None else max(0, self.limit - self.reserved - self.spent)


class BudgetEntry(TenantRow):
    """One line of an account: RESERVE holds, POST spends what was held, VOID gives back, USAGE spends."""

    class Kind(models.TextChoices):
        RESERVE = "RESERVE"
        POST = "POST"
        VOID = "VOID"
        USAGE = "USAGE"

    account = models.ForeignKey(BudgetAccount, models.PROTECT, related_name="entries", db_constraint=False)
    attempt = models.ForeignKey(
        "ledger.Attempt", models.PROTECT, null=True, related_name="+", db_constraint=False
    )
    kind = models.CharField(max_length=8, choices=Kind.choices)
    reserved_change = models.BigIntegerField()
    spent_change = models.BigIntegerField()
    usage_id = models.CharField(max_length=255, blank=True)
    at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                "account", "usage_id", condition=~Q(usage_id=""), name="usage_counted_once"
            ),
        )
        triggers = triggers.append_only()


class RunCheckpoint(TenantRow):
    """Where a run says it can go on from; sequence only grows."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="checkpoints", db_constraint=False)
    sequence = models.BigIntegerField()
    reference = models.CharField(max_length=1000)
    content_hash = models.CharField(max_length=80)
    at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint("run", "sequence", name="run_checkpoint_sequence"),)
        indexes = (models.Index(F("run"), F("sequence").desc(), name="newest_run_checkpoint"),)
        triggers = triggers.append_only()
