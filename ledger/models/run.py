"""Runs, their budgets and checkpoints: the limits that survive a resume."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
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


class ExactAmount(models.DecimalField):  # type: ignore[type-arg]  # generic in the stubs only
    """A number as it was given: nothing pads its decimals, and no sum of them is ever rounded or too large.

    `rules/amounts.py` bounds what comes in; Django's own bounds would only be asked by a form.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_digits": 100, "decimal_places": 8, **options})

    def db_type(self, connection: BaseDatabaseWrapper) -> str:  # noqa: ARG002
        return "numeric"


class BudgetUnit(models.TextChoices):
    """What every run counts, limited or not; units of money are opened as limits or arguments name them."""

    TOOL_CALLS = "tool_calls"
    TURNS = "turns"
    TOKENS = "tokens"


class BudgetAccount(TenantRow):
    """What one run may use of one unit, and what it has used; no limit where `limit` is null.

    A unit of money is kept upper case, its amounts in the unit itself, exactly as written.
    """

    run = models.ForeignKey(Run, models.PROTECT, related_name="accounts", db_constraint=False)
    unit = models.CharField(max_length=32)
    limit = ExactAmount(null=True)
    reserved = ExactAmount(default=Decimal(0))
    spent = ExactAmount(default=Decimal(0))

    class Meta:
        constraints = (
            models.UniqueConstraint("run", "unit", name="one_account_per_unit"),
            models.CheckConstraint(condition=Q(reserved__gte=0, spent__gte=0), name="budget_not_negative"),
            models.CheckConstraint(
                condition=Q(unit__in=BudgetUnit.values) | Q(unit__regex=r"^[A-Z][A-Z0-9_.-]{0,31}$"),
                name="unit_in_one_spelling",
            ),
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
    def left(self) -> Decimal | None:
        return None if self.limit is None else max(Decimal(0), self.limit - self.reserved - self.spent)


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
    reserved_change = ExactAmount()
    spent_change = ExactAmount()
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
