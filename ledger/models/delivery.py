"""Settlements and their deliveries: the second machine, never mixed with the first."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from ledger.models import ids, triggers
from ledger.models.attempt import Attempt
from ledger.models.base import IdField, TenantRow
from ledger.models.event import Event
from ledger.models.operation import Operation
from ledger.rules.states import DeliveryState, Outcome


class Destination(TenantRow):
    """Where one consumer hears of settlements."""

    id = IdField(default=ids.destination_id)
    name = models.CharField(max_length=100)
    url = models.CharField(max_length=2000)
    ack = models.CharField(max_length=8, choices=[("response", "response"), ("explicit", "explicit")])
    outcomes = ArrayField(models.CharField(max_length=16), default=list)  # empty: all
    tool_globs = ArrayField(models.CharField(max_length=200), default=list)  # empty: all
    paused_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint("tenant", "name", name="destination_name"),)

    def __str__(self) -> str:
        return self.name


class Settlement(TenantRow):
    """One entry of an operation into a non-open outcome: 1, 2, … Consumers keep the highest number."""

    operation = models.ForeignKey(Operation, models.PROTECT, related_name="settlements", db_constraint=False)
    number = models.PositiveIntegerField()
    outcome = models.CharField(max_length=16, choices=[(o, o) for o in Outcome if o is not Outcome.OPEN])
    attempt = models.ForeignKey(Attempt, models.PROTECT, related_name="+", db_constraint=False)
    event = models.OneToOneField(Event, models.PROTECT, related_name="+", db_constraint=False)
    at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint("operation", "number", name="settlement_number"),)
        triggers = triggers.append_only()


class Delivery(TenantRow):
    """One consumer's copy of one settlement."""

    id = IdField(default=ids.delivery_id)
    operation = models.ForeignKey(Operation, models.PROTECT, related_name="deliveries", db_constraint=False)
    settlement = models.ForeignKey(Settlement, models.PROTECT, related_name="deliveries", db_constraint=False)
    destination = models.ForeignKey(
        Destination, models.PROTECT, related_name="deliveries", db_constraint=False
    )
    webhook_id = models.CharField(max_length=40, default=ids.webhook_id, unique=True)
    state = models.CharField(
        max_length=16, default=DeliveryState.PENDING, choices=[(s, s) for s in DeliveryState]
    )
    created_at = models.DateTimeField()
    next_at = models.DateTimeField(null=True)
    held_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint("settlement", "destination", name="one_delivery_per_settlement"),
            models.CheckConstraint(
                condition=~Q(state__in=[DeliveryState.PENDING, DeliveryState.SENT])
                | Q(next_at__isnull=False)
                | Q(held_at__isnull=False),
                name="undelivered_has_a_next_time",
            ),
        )
        indexes = (
            models.Index("next_at", condition=Q(state__in=["PENDING", "SENT"]), name="deliveries_due"),
        )
        triggers = (
            triggers.first_delivery_state(),
            triggers.legal_delivery_moves(),
            triggers.fixed_columns(
                "id", "tenant_id", "operation_id", "settlement_id", "destination_id", "webhook_id"
            ),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )
