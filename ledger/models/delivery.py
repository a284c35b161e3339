"""Settlements and their deliveries: the second machine, never mixed with the first."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from ledger.models import ids, triggers
from ledger.models.attempt import Attempt
from ledger.models.base import IdField, TenantRow
from ledger.models.destination import Destination
from ledger.models.event import Event
from ledger.models.operation import Operation
from ledger.models.people import ApiKey, ReviewGroup, User
from ledger.rules.deliveries import DeadReason, TryEnd
from ledger.rules.states import DeliveryState, Outcome


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
    """One consumer's copy of one settlement.

    `body` is frozen before the first try and sent byte for byte ever after. `tries` counts all of them,
    `tries_before` those that the schedule does not: made before a person last had it redelivered, or never
    sent for a fault of our own. It is due at `next_at`, also where it is ACKED and a person wants a further
    copy sent.
    """

    id = IdField(default=ids.delivery_id)
    operation = models.ForeignKey(Operation, models.PROTECT, related_name="deliveries", db_constraint=False)
    settlement = models.ForeignKey(Settlement, models.PROTECT, related_name="deliveries", db_constraint=False)
    destination = models.ForeignKey(
        Destination, models.PROTECT, related_name="deliveries", db_constraint=False
    )
    webhook_id = models.CharField(max_length=40, default=ids.webhook_id, unique=True)
    body = models.BinaryField(null=True)
    state = models.CharField(
        max_length=16, default=DeliveryState.PENDING, choices=[(s, s) for s in DeliveryState]
    )
    tries = models.PositiveIntegerField(default=0, db_default=0)
    tries_before = models.PositiveIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField()
    next_at = models.DateTimeField(null=True)
    held_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    lease_epoch = models.PositiveIntegerField(default=0, db_default=0)
    last_end = models.CharField(
        max_length=16, default="", db_default="", blank=True, choices=[(e.value, e.value) for e in TryEnd]
    )
    acked_at = models.DateTimeField(null=True)
    dead_at = models.DateTimeField(null=True)
    dead_reason = models.CharField(
        max_length=24, default="", db_default="", blank=True, choices=[(r.value, r.value) for r in DeadReason]
    )
    owner_group = models.ForeignKey(
        ReviewGroup, models.PROTECT, null=True, related_name="+", db_constraint=False
    )

    class Meta:
        constraints = (
            models.UniqueConstraint("settlement", "destination", name="one_delivery_per_settlement"),
            models.CheckConstraint(
                condition=~Q(state__in=[DeliveryState.PENDING, DeliveryState.SENT])
                | Q(next_at__isnull=False)
                | Q(held_at__isnull=False),
                name="undelivered_has_a_next_time",
            ),
            models.CheckConstraint(
                condition=~Q(state=DeliveryState.ACKED) | Q(acked_at__isnull=False),
                name="acked_was_acknowledged",
            ),
            models.CheckConstraint(
                condition=~Q(state=DeliveryState.DEAD_LETTERED)
                | (~Q(dead_reason="") & Q(dead_at__isnull=False, owner_group__isnull=False)),
                name="dead_has_reason_and_owner",
            ),
        )
        indexes = (
            models.Index("next_at", condition=Q(state__in=["PENDING", "SENT"]), name="deliveries_due"),
            models.Index(
                "destination",
                "next_at",
                condition=Q(next_at__isnull=False),
                name="deliveries_by_destination",
            ),
            models.Index("destination", condition=Q(lease_until__isnull=False), name="deliveries_under_way"),
            models.Index("destination", "id", condition=Q(held_at__isnull=False), name="deliveries_held"),
            models.Index(
                "tenant", "destination", "dead_at", condition=Q(state="DEAD_LETTERED"), name="dead_letters"
            ),
        )
        triggers = (
            triggers.first_delivery_state(),
            triggers.legal_delivery_moves(),
            triggers.fixed_columns(
                "id", "tenant_id", "operation_id", "settlement_id", "destination_id", "webhook_id"
            ),
            triggers.set_once("body", "acked_at"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )


class DeliveryTry(TenantRow):
    """One try, written before anything is sent; its end is written once. Without an end and with its lease
    over, its sender was lost: it may have been received."""

    delivery = models.ForeignKey(Delivery, models.PROTECT, related_name="sent_tries", db_constraint=False)
    number = models.PositiveIntegerField()
    lease_epoch = models.PositiveIntegerField()
    replay = models.BooleanField(default=False)
    at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_as = models.CharField(max_length=16, null=True, choices=[(e.value, e.value) for e in TryEnd])  # noqa: DJ001
    url = models.CharField(max_length=2000)
    sent_headers = models.JSONField(null=True)
    status = models.PositiveSmallIntegerField(null=True)
    answer_headers = models.JSONField(null=True)
    answer_head = models.BinaryField(null=True)
    answer_cut = models.BooleanField(null=True)
    detail = models.TextField(null=True)  # noqa: DJ001
    took_ms = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint("delivery", "number", name="delivery_try_number"),)
        triggers = (
            triggers.fixed_columns(
                "tenant_id", "delivery_id", "number", "lease_epoch", "replay", "at", "url"
            ),
            triggers.set_once(
                *("ended_at", "ended_as", "sent_headers", "status", "answer_headers", "answer_head"),
                *("answer_cut", "detail", "took_ms"),
            ),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )


class DeliveryAck(TenantRow):
    """One acknowledgement: a 2xx (no key), or a consumer's own call."""

    delivery = models.ForeignKey(Delivery, models.PROTECT, related_name="acks", db_constraint=False)
    key = models.ForeignKey(ApiKey, models.PROTECT, null=True, related_name="+", db_constraint=False)
    duplicate = models.BooleanField(default=False)
    at = models.DateTimeField()

    class Meta:
        triggers = triggers.append_only()


class RedeliveryPlan(TenantRow):
    """Deliveries that a person had sent again: the list is frozen, the rate is theirs, it can be stopped."""

    id = IdField(default=ids.redelivery_plan_id)
    by = models.ForeignKey(User, models.PROTECT, related_name="+")
    why = models.TextField()
    chosen_by = models.JSONField(default=dict)
    rate_per_s = models.FloatField()
    created_at = models.DateTimeField()
    next_at = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True)
    cancelled_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (models.CheckConstraint(condition=Q(rate_per_s__gt=0), name="redelivery_plan_rate"),)
        triggers = (
            triggers.fixed_columns("id", "tenant_id", "by_id", "why", "chosen_by", "rate_per_s"),
            triggers.set_once("cancelled_at", "cancelled_by_id", "finished_at"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )


class PlannedRedelivery(TenantRow):
    """One line of a plan: done or skipped, with the reason, in the order of the frozen list."""

    plan = models.ForeignKey(RedeliveryPlan, models.PROTECT, related_name="lines", db_constraint=False)
    position = models.PositiveIntegerField()
    delivery = models.ForeignKey(Delivery, models.PROTECT, related_name="+", db_constraint=False)
    done_at = models.DateTimeField(null=True)
    skipped = models.CharField(max_length=64, null=True)  # noqa: DJ001

    class Meta:
        constraints = (
            models.UniqueConstraint("plan", "position", name="planned_redelivery_position"),
            models.UniqueConstraint("plan", "delivery", name="planned_once"),
        )
        triggers = (
            triggers.fixed_columns("tenant_id", "plan_id", "position", "delivery_id"),
            triggers.set_once("done_at", "skipped"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )
