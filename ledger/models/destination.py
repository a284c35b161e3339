"""Where consumers hear of settlements, and what each destination is signed with."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from ledger.models import ids, triggers
from ledger.models.base import IdField, TenantRow
from ledger.rules.deliveries import PauseReason


class Destination(TenantRow):
    """Where one consumer hears of settlements.

    `failures` in a row since it last answered well; while it rests (`rests_until`) nothing is sent to it.
    """

    id = IdField(default=ids.destination_id)
    name = models.CharField(max_length=100)
    url = models.CharField(max_length=2000)
    ack = models.CharField(max_length=8, choices=[("response", "response"), ("explicit", "explicit")])
    ack_deadline_s = models.FloatField(default=300.0, db_default=300.0)
    most_at_once = models.PositiveSmallIntegerField(default=4, db_default=4)
    outcomes = ArrayField(models.CharField(max_length=16), default=list)  # empty: all
    tool_globs = ArrayField(models.CharField(max_length=200), default=list)  # empty: all
    failures = models.PositiveIntegerField(default=0, db_default=0)
    failing_since = models.DateTimeField(null=True)
    rests_until = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True)
    paused_because = models.CharField(
        max_length=16,
        default="",
        db_default="",
        blank=True,
        choices=[(r.value, r.value) for r in PauseReason],
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint("tenant", "name", name="destination_name"),
            models.CheckConstraint(
                condition=Q(most_at_once__gte=1) & Q(ack_deadline_s__gt=0), name="destination_limits"
            ),
        )

    def __str__(self) -> str:
        return self.name


class DestinationSecret(TenantRow):
    """One secret of a destination, sealed at rest. Until `retires_at` it signs beside its successor."""

    destination = models.ForeignKey(Destination, models.PROTECT, related_name="secrets", db_constraint=False)
    sealed = models.BinaryField()
    created_at = models.DateTimeField()
    retires_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                "destination", condition=Q(retires_at=None), name="one_secret_without_end"
            ),
        )
        triggers = (
            triggers.fixed_columns("tenant_id", "destination_id", "sealed", "created_at"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )


class DestinationChange(TenantRow):
    """One line of what was done to a destination, by whom: added, paused, resumed, secret rotated, tested."""

    destination = models.ForeignKey(Destination, models.PROTECT, related_name="changes", db_constraint=False)
    kind = models.CharField(max_length=32)
    actor = models.CharField(max_length=150)
    why = models.TextField(default="")
    data = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        triggers = triggers.append_only()
