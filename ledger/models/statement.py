"""What people say became of something sent, and what their word rests on."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from ledger.models import triggers
from ledger.models.attempt import Attempt, LookUp
from ledger.models.base import TenantRow
from ledger.models.event import Event
from ledger.models.people import User
from ledger.models.review import Decision
from ledger.rules.statements import Ended, Says


class Statement(TenantRow):
    """One person's word: it happened, or it did not. Of a dangerous effect one alone settles nothing.

    It rests on the note (the decision's `why`), the provider's reference, or the transcript of a look-up.
    It stands until `ended_at`; `contradicted_at` is set by a fact that says otherwise, then or later.
    """

    decision = models.OneToOneField(Decision, models.PROTECT, related_name="statement", db_constraint=False)
    attempt = models.ForeignKey(Attempt, models.PROTECT, related_name="statements", db_constraint=False)
    by = models.ForeignKey(User, models.PROTECT, related_name="+")
    says = models.CharField(max_length=16, choices=[(says, says) for says in Says])
    reference = models.CharField(max_length=255, blank=True)
    look_up = models.ForeignKey(LookUp, models.PROTECT, null=True, related_name="+", db_constraint=False)
    at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_how = models.CharField(max_length=40, blank=True, choices=[(how, how) for how in Ended])
    contradicted_at = models.DateTimeField(null=True)
    contradicted_by = models.ForeignKey(
        Event, models.PROTECT, null=True, related_name="+", db_constraint=False
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(
                "attempt", "by", condition=Q(ended_at__isnull=True), name="one_statement_per_person"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, ended_how="")
                | (Q(ended_at__isnull=False) & ~Q(ended_how="")),
                name="statement_ended_somehow",
            ),
            models.CheckConstraint(
                condition=Q(contradicted_at__isnull=True, contradicted_by__isnull=True)
                | Q(contradicted_at__isnull=False, contradicted_by__isnull=False),
                name="contradicted_by_an_event",
            ),
        )
        indexes = (
            models.Index("by", "attempt", condition=Q(contradicted_at__isnull=False), name="contradicted"),
        )
        triggers = (
            triggers.fixed_columns(
                "tenant_id", "decision_id", "attempt_id", "by_id", "says", "reference", "look_up_id", "at"
            ),
            triggers.set_once("ended_at", "contradicted_at"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )
