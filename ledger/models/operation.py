"""Operations: one logical side effect, known by its stable key."""

from __future__ import annotations

from django.db import models

from ledger.models import ids, triggers
from ledger.models.base import IdField, TenantRow
from ledger.models.people import Agent
from ledger.models.run import Run
from ledger.rules.chain import CHAIN_START
from ledger.rules.states import Outcome


class Operation(TenantRow):
    """One logical side effect; `operation_key` is unique per tenant and kept for ever.

    `event_count` and `head_hash` are the head of its history; every verb locks this row first.
    """

    id = IdField(default=ids.operation_id)
    operation_key = models.CharField(max_length=255, db_collation="C")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_constraint=False)
    run = models.ForeignKey(Run, models.PROTECT, null=True, related_name="operations", db_constraint=False)
    step = models.CharField(max_length=255, blank=True)
    task_id = models.CharField(max_length=255, blank=True)
    retry_of = models.CharField(max_length=255, blank=True)
    created_at = models.DateTimeField()
    cancelled_at = models.DateTimeField(null=True)
    cancel_reason = models.CharField(max_length=1000, blank=True)
    outcome = models.CharField(max_length=16, default=Outcome.OPEN, choices=[(o, o) for o in Outcome])
    settlements_count = models.PositiveIntegerField(default=0)
    event_count = models.PositiveIntegerField(default=0)
    head_hash = models.CharField(max_length=80, default=CHAIN_START)

    class Meta:
        constraints = (models.UniqueConstraint("tenant", "operation_key", name="operation_key_once"),)
        indexes = (models.Index("tenant", "created_at", "id", name="operations_by_age"),)
        triggers = (
            triggers.fixed_columns(
                "id", "tenant_id", "operation_key", "agent_id", "run_id", "step", "created_at"
            ),
            triggers.set_once("cancelled_at"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )

    def __str__(self) -> str:
        return self.operation_key
