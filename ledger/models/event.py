"""The append-only history: events chained per operation, and refusals that made no operation."""

from __future__ import annotations

import json
from typing import Any

from django.db import models

from ledger.models import ids, triggers
from ledger.models.attempt import Attempt
from ledger.models.base import IdField, TenantRow, TransactionIdField
from ledger.models.operation import Operation
from ledger.models.people import Agent


class Event(TenantRow):
    """One line of the history of an operation. `body` is canonical JSON and exactly what is hashed."""

    id = IdField(default=ids.event_id)
    operation = models.ForeignKey(Operation, models.PROTECT, related_name="events", db_constraint=False)
    attempt = models.ForeignKey(
        Attempt, models.PROTECT, null=True, related_name="events", db_constraint=False
    )
    sequence = models.PositiveIntegerField()
    kind = models.CharField(max_length=40)
    actor_kind = models.CharField(max_length=12)
    actor = models.CharField(max_length=200)
    body = models.TextField()
    at = models.DateTimeField()
    previous_hash = models.CharField(max_length=80)
    hash = models.CharField(max_length=80)
    written_in = TransactionIdField(null=True)  # not hashed: a copy of the database numbers transactions anew

    class Meta:
        constraints = (models.UniqueConstraint("operation", "sequence", name="event_sequence"),)
        indexes = (models.Index("written_in", name="events_by_transaction"),)
        triggers = (*triggers.append_only(), triggers.next_in_chain())

    @property
    def hashed_fields(self) -> dict[str, Any]:
        """Everything the hash covers beside the hash before it."""
        return {
            "id": self.id,
            "tenant": str(self.tenant_id),
            "operation": self.operation_id,
            "attempt": self.attempt_id,
            "sequence": self.sequence,
            "kind": str(self.kind),
            "actor_kind": str(self.actor_kind),
            "actor": self.actor,
            "at": self.at.isoformat(timespec="microseconds"),
            "body": self.body,
        }

    @property
    def data(self) -> dict[str, Any]:
        """What the event says beside who, when and of which attempt."""
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


class Refusal(TenantRow):
    """An intent that was refused and made no operation."""

    agent = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_constraint=False)
    key_id = models.CharField(max_length=32)
    operation_key = models.CharField(max_length=255)
    tool = models.CharField(max_length=200)
    args_hash = models.CharField(max_length=80)
    reason = models.CharField(max_length=32)
    at = models.DateTimeField()

    class Meta:
        indexes = (models.Index("tenant", models.F("at").desc(), name="refusals_by_age"),)
        triggers = triggers.append_only()
