"""Facts that came before what they are about: kept until it appears, or a person says what they are."""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from django.db.models import Q

from ledger.models import ids, triggers
from ledger.models.attempt import Attempt
from ledger.models.base import IdField, TenantRow
from ledger.models.people import ApiKey, User
from ledger.rules.vocabulary import FactKind

_WAITING = Q(joined_at__isnull=True)
_OPEN = Q(joined_at__isnull=True, dismissed_at__isnull=True)


class ParkedFact(TenantRow):
    """One report about an attempt or operation that the tenant did not know when it came.

    `body` is the report as canonical JSON. The row stays after it is joined, so that the same report is a
    repetition before, at and after that. `size`: bytes of what was told. Dismissed ones are joined as well.
    """

    id = IdField(default=ids.parked_fact_id)
    kind = models.CharField(max_length=20, choices=[(kind, kind) for kind in FactKind])
    attempt_told = models.CharField(max_length=40, blank=True, db_collation="C")
    operation_key = models.CharField(max_length=255, blank=True, db_collation="C")
    body = models.TextField()
    content_hash = models.CharField(max_length=80, db_collation="C")
    size = models.PositiveIntegerField()
    told_by = models.ForeignKey(ApiKey, models.PROTECT, related_name="+", db_constraint=False)
    parked_at = models.DateTimeField()

    times_told = models.PositiveIntegerField(default=1)
    last_told_at = models.DateTimeField()
    dismissed_at = models.DateTimeField(null=True)
    joined_at = models.DateTimeField(null=True)
    attempt = models.ForeignKey(Attempt, models.PROTECT, null=True, related_name="+", db_constraint=False)

    class Meta:
        constraints = (
            models.UniqueConstraint("tenant", "content_hash", name="fact_told_once"),
            models.CheckConstraint(
                condition=Q(joined_at__isnull=True, attempt__isnull=True)
                | Q(joined_at__isnull=False, attempt__isnull=False),
                name="joined_to_an_attempt",
            ),
            models.CheckConstraint(
                condition=~Q(attempt_told="") | ~Q(operation_key=""), name="fact_names_something"
            ),
        )
        indexes = (
            models.Index("tenant", "parked_at", "id", condition=_OPEN, name="open_parked_facts"),
            models.Index("tenant", "operation_key", condition=_WAITING, name="parked_by_operation_key"),
            models.Index("attempt_told", condition=_WAITING, name="parked_by_attempt"),
        )
        triggers = (
            triggers.fixed_columns(
                "id", "tenant_id", "kind", "attempt_told", "operation_key", "body", "content_hash", "size",
                "told_by_id", "parked_at",
            ),
            triggers.set_once("dismissed_at", "joined_at", "attempt_id"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )  # fmt: skip

    @property
    def said(self) -> dict[str, Any]:
        """The report as it was told."""
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


class ParkedNote(TenantRow):
    """What a person said about a parked fact. `dismisses`: that it needs nobody's attention any more."""

    fact = models.ForeignKey(ParkedFact, models.PROTECT, related_name="notes", db_constraint=False)
    by = models.ForeignKey(User, models.PROTECT, related_name="+")
    dismisses = models.BooleanField(default=False)
    why = models.CharField(max_length=4000)
    at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint("fact", condition=Q(dismisses=True), name="dismissed_once"),)
        indexes = (models.Index("fact", "at", name="notes_of_fact"),)
        triggers = triggers.append_only()
