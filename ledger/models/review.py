"""The facts of deciding: review items, decisions, votes, approvals; written with the attempts they bind."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from ledger.models import ids, triggers
from ledger.models.attempt import Attempt
from ledger.models.base import IdField, TenantRow
from ledger.models.operation import Operation
from ledger.models.people import ReviewGroup, User
from ledger.models.policy import PolicySnapshot
from ledger.rules.vocabulary import DecisionKind, Escalation, ReviewReason


class ReviewItem(TenantRow):
    """The open question about one attempt: reason, owner, due time. Owned by a group from birth.

    `owner_chosen`: a person said whose it is, so that no rule moves it by itself. Snoozed, it is on no active
    list until `snoozed_until`; its due time runs on. `waiting_on`: whom or what its people wait for.
    """

    id = IdField(default=ids.review_item_id)
    operation = models.ForeignKey(Operation, models.PROTECT, related_name="review_items", db_constraint=False)
    attempt = models.ForeignKey(Attempt, models.PROTECT, related_name="review_items", db_constraint=False)
    reason = models.CharField(max_length=32, choices=[(r, r) for r in ReviewReason])
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField()
    owner_group = models.ForeignKey(ReviewGroup, models.PROTECT, related_name="+", db_constraint=False)
    owner = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    claimed_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    claim_until = models.DateTimeField(null=True)
    owner_chosen = models.BooleanField(default=False, db_default=False)
    snoozed_until = models.DateTimeField(null=True)
    waiting_on = models.CharField(max_length=200, default="", db_default="", blank=True)
    waiting_on_url = models.CharField(max_length=2000, default="", db_default="", blank=True)
    closed_at = models.DateTimeField(null=True)
    closed_how = models.CharField(max_length=40, blank=True)

    # When to look whether its key window is closing. An older ledger, while this one is rolled out, writes
    # items without saying so: those are looked at once, which sets the true time.
    escalate_at = models.DateTimeField(null=True, db_default=Now())
    escalated_at = models.DateTimeField(null=True)
    escalated_for = models.CharField(
        max_length=20, blank=True, db_default="", choices=[(e, e) for e in Escalation]
    )

    class Meta:
        constraints = (
            models.UniqueConstraint("attempt", condition=Q(closed_at__isnull=True), name="one_open_item"),
            models.CheckConstraint(
                condition=Q(claimed_by__isnull=True, claim_until__isnull=True)
                | Q(claimed_by__isnull=False, claim_until__isnull=False),
                name="claim_has_an_end",
            ),
        )
        indexes = (
            models.Index("tenant", "due_at", "id", condition=Q(closed_at__isnull=True), name="open_items"),
            models.Index(
                "tenant", "owner", "due_at", condition=Q(closed_at__isnull=True), name="open_items_by_owner"
            ),
            models.Index(
                "tenant", F("closed_at").desc(), condition=Q(closed_at__isnull=False), name="closed_items"
            ),
            models.Index(
                "escalate_at",
                condition=Q(closed_at__isnull=True, escalate_at__isnull=False),
                name="items_to_escalate",
            ),
        )
        triggers = (
            triggers.fixed_columns("id", "tenant_id", "operation_id", "attempt_id", "opened_at"),
            triggers.set_once("closed_at"),
            triggers.question_closes_with_its_attempt(),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )


class Decision(TenantRow):
    """What a person chose, and why. None is undone, only answered by another."""

    id = IdField(default=ids.decision_id)
    item = models.ForeignKey(ReviewItem, models.PROTECT, related_name="decisions", db_constraint=False)
    attempt = models.ForeignKey(Attempt, models.PROTECT, related_name="decisions", db_constraint=False)
    kind = models.CharField(max_length=32, choices=[(k, k) for k in DecisionKind])
    by = models.ForeignKey(User, models.PROTECT, related_name="+")
    why = models.CharField(max_length=4000)
    data = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        indexes = (models.Index("item", "at", name="decisions_of_item"),)
        triggers = triggers.append_only()


class Approval(TenantRow):
    """Enough votes for one new send of exactly one attempt; used once or never."""

    id = IdField(default=ids.approval_id)
    operation = models.ForeignKey(Operation, models.PROTECT, related_name="approvals", db_constraint=False)
    attempt = models.ForeignKey(Attempt, models.PROTECT, related_name="approvals", db_constraint=False)
    approved_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    voided_at = models.DateTimeField(null=True)
    void_cause = models.CharField(max_length=40, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                "attempt",
                condition=Q(used_at__isnull=True, voided_at__isnull=True),
                name="one_waiting_approval",
            ),
            models.CheckConstraint(
                condition=Q(used_at__isnull=True) | Q(voided_at__isnull=True), name="used_or_voided"
            ),
        )
        triggers = (
            triggers.fixed_columns(
                "id", "tenant_id", "operation_id", "attempt_id", "approved_at", "expires_at"
            ),
            triggers.set_once("used_at", "voided_at"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )


class Vote(TenantRow):
    """One approver's yes, bound to one digest of everything it means."""

    decision = models.OneToOneField(Decision, models.PROTECT, related_name="vote", db_constraint=False)
    attempt = models.ForeignKey(Attempt, models.PROTECT, related_name="votes", db_constraint=False)
    approval = models.ForeignKey(
        Approval, models.PROTECT, null=True, related_name="votes", db_constraint=False
    )
    approver = models.ForeignKey(User, models.PROTECT, related_name="+")
    policy = models.ForeignKey(PolicySnapshot, models.PROTECT, related_name="+", db_constraint=False)
    rule_hash = models.CharField(max_length=80)
    scopes = ArrayField(models.CharField(max_length=200))
    generation = models.PositiveIntegerField()
    twins = ArrayField(models.CharField(max_length=40), default=list)  # operations shown as the same call
    meaning = models.TextField()
    digest = models.CharField(max_length=80)
    at = models.DateTimeField()
    expires_at = models.DateTimeField()
    voided_at = models.DateTimeField(null=True)
    void_cause = models.CharField(max_length=40, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                "attempt",
                "approver",
                condition=Q(approval__isnull=True, voided_at__isnull=True),
                name="one_open_vote_per_person",
            ),
            models.UniqueConstraint("approval", "approver", name="approval_by_distinct_people"),
        )
        triggers = (
            triggers.fixed_columns(
                "tenant_id", "decision_id", "attempt_id", "approver_id", "policy_id", "rule_hash", "scopes",
                "generation", "twins", "meaning", "digest", "at", "expires_at",
            ),
            triggers.set_once("approval_id", "voided_at"),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )  # fmt: skip


class ApprovalUse(TenantRow):
    """The one send an approval led to, written in the transaction that gave leave."""

    approval = models.OneToOneField(Approval, models.PROTECT, related_name="use", db_constraint=False)
    attempt = models.OneToOneField(Attempt, models.PROTECT, related_name="approval_use", db_constraint=False)
    args_hash = models.CharField(max_length=80)
    rule_hash = models.CharField(max_length=80)
    at = models.DateTimeField()

    class Meta:
        triggers = (*triggers.append_only(), triggers.used_for_what_it_approved())
