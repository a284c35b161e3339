"""Attempts: one try at an operation, and the look-ups made about it."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.lookups import Exact

from ledger.models import ids, triggers
from ledger.models.base import IdField, TenantRow
from ledger.models.operation import Operation
from ledger.models.people import Agent, User
from ledger.models.policy import PolicySnapshot, Provider
from ledger.rules.states import ALWAYS_LIVE, FINAL, State
from ledger.rules.vocabulary import ConfirmedBy, FailedBy, ReviewReason

_LIVE = Q(state__in=sorted(ALWAYS_LIVE)) | Q(state=State.MANUAL_REVIEW, dispatched_at__isnull=False)


class HashOfBytes(models.Func):
    """`v1:sha256:<hex>` of a bytea column, computed by the database."""

    template = "('v1:sha256:' || encode(sha256(%(expressions)s), 'hex'))"
    output_field = models.CharField()


class Attempt(TenantRow):
    """One try at an operation, numbered from 1. Only `ledger.lifecycle` writes it.

    Times are the database's. Four leases never share a column: the send lease (`lease_until`), the look-up
    lease (`lookup_lease_until`), the claim of a person (on the review item), a delivery's (on the delivery).
    """

    id = IdField(default=ids.attempt_id)
    operation = models.ForeignKey(Operation, models.PROTECT, related_name="attempts", db_constraint=False)
    number = models.PositiveIntegerField()
    descends_from = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="descendants", db_constraint=False
    )

    # What is to be sent: fixed at birth.
    tool = models.CharField(max_length=200)
    args_bytes = models.BinaryField(null=True)  # null for a hash-only intent
    args = models.JSONField(null=True)  # for search only, without what the rule masks
    args_hash = models.CharField(max_length=80, db_collation="C")
    generation = models.PositiveIntegerField(default=1)
    idempotency_key = models.CharField(max_length=80)
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="attempts", db_constraint=False)
    requested_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    arguments_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")  # who corrected them
    actor = models.CharField(max_length=200, blank=True)  # the agent's own words
    expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    # Under which rule.
    policy = models.ForeignKey(PolicySnapshot, models.PROTECT, related_name="+", db_constraint=False)
    rule_hash = models.CharField(max_length=80)

    # Where it stands.
    state = models.CharField(max_length=20, choices=[(s, s) for s in State])
    reason = models.CharField(max_length=32, blank=True, choices=[(r, r) for r in ReviewReason])
    entered_state_at = models.DateTimeField()
    start_by = models.DateTimeField(null=True)  # until when it waits for its agent to ask for leave
    held_at = models.DateTimeField(null=True)  # set once: an attempt that was ever held needs an approval
    maybe_sent = models.BooleanField(default=False)
    closed_to_sending_at = models.DateTimeField(null=True)  # rejected although it was sent
    relinked_to = models.ForeignKey(
        Operation, models.PROTECT, null=True, related_name="+", db_constraint=False
    )

    # Leave and the send lease.
    dispatched_at = models.DateTimeField(null=True)
    scopes = ArrayField(models.CharField(max_length=200), default=list)
    worker_id = models.CharField(max_length=200, blank=True)
    leave_id = models.CharField(max_length=200, blank=True)
    lease_until = models.DateTimeField(null=True)
    lease_ended_at = models.DateTimeField(null=True)  # when it was given up or ran out
    lease_epoch = models.PositiveIntegerField(default=0)
    key_first_sent_at = models.DateTimeField(null=True)  # of this provider key, over all attempts
    send_again_at = models.DateTimeField(null=True)  # end of the back-off of FAILED_RETRYABLE

    # What was found out.
    provider_request_id = models.CharField(max_length=255, blank=True, db_collation="C")
    result_ref = models.CharField(max_length=1000, blank=True)
    success_reported = models.BooleanField(default=False)
    positive_evidence = models.BooleanField(default=False)
    confirmed_by = models.CharField(max_length=16, blank=True, choices=[(c, c) for c in ConfirmedBy])
    failed_by = models.CharField(max_length=16, blank=True, choices=[(f, f) for f in FailedBy])
    failure = models.CharField(
        max_length=32, blank=True
    )  # cancelled, rejected, not_started, an error class …
    absent_by_lookup = models.BooleanField(default=False)  # FAILED_RETRYABLE rests on an "absent"

    # Recovery.
    next_check_at = models.DateTimeField(null=True)
    lookup_lease_until = models.DateTimeField(null=True)
    lookup_epoch = models.PositiveIntegerField(default=0)
    checks = models.PositiveIntegerField(default=0)  # undecided answers of a reachable provider
    negatives = models.PositiveIntegerField(default=0)
    last_negative_at = models.DateTimeField(null=True)  # when it was asked for
    adapter_failures = models.PositiveIntegerField(default=0)
    lookup_failures = models.PositiveIntegerField(default=0)  # unavailable in a row: drives the back-off

    class Meta:
        constraints = (
            models.UniqueConstraint("operation", "number", name="attempt_number"),
            models.UniqueConstraint("operation", condition=_LIVE, name="one_live_attempt"),
            models.UniqueConstraint(
                "operation", condition=Q(state=State.OUTCOME_CONFIRMED), name="one_confirmed_attempt"
            ),
            models.CheckConstraint(
                condition=Q(args_bytes__isnull=True)
                | Q(Exact(models.F("args_hash"), HashOfBytes("args_bytes"))),
                name="args_hash_is_of_the_bytes",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.OUTCOME_CONFIRMED) | ~Q(confirmed_by=""), name="confirmed_by_someone"
            ),
            models.CheckConstraint(
                condition=~Q(state=State.FAILED) | ~Q(failed_by=""), name="failed_by_someone"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[State.UNKNOWN, State.MANUAL_REVIEW]) | ~Q(reason=""),
                name="open_has_reason",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.DISPATCHED)
                | Q(dispatched_at__isnull=False, lease_until__isnull=False),
                name="dispatched_has_lease",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=sorted(FINAL))
                | Q(lease_until__isnull=True, lookup_lease_until__isnull=True),
                name="final_holds_no_lease",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.UNKNOWN) | Q(next_check_at__isnull=False),
                name="unknown_is_checked_again",
            ),
            models.CheckConstraint(condition=~Q(descends_from=models.F("id")), name="not_its_own_ancestor"),
        )
        indexes = (
            models.Index(
                "next_check_at", condition=Q(next_check_at__isnull=False), name="attempts_to_look_up"
            ),
            models.Index("lease_until", condition=Q(state=State.DISPATCHED), name="send_leases"),
            models.Index("tenant", "args_hash", name="attempts_by_hash"),
            models.Index("start_by", condition=Q(start_by__isnull=False), name="attempts_waiting_for_agent"),
            models.Index(
                "tenant",
                "provider_request_id",
                condition=~Q(provider_request_id=""),
                name="attempts_by_request_id",
            ),
        )
        triggers = (
            triggers.first_attempt_state(),
            triggers.legal_attempt_moves(),
            triggers.fixed_columns(
                "id", "tenant_id", "operation_id", "number", "descends_from_id", "tool", "args_bytes", "args",
                "args_hash", "generation", "idempotency_key", "agent_id", "requested_by_id",
                "arguments_by_id", "actor", "expires_at", "created_at",
            ),
            triggers.fixed_columns(
                "policy_id", "rule_hash", name="fixed_rule",
                unless="OLD.state = 'INTENT_RECORDED' AND OLD.dispatched_at IS NULL AND OLD.held_at IS NULL",
            ),
            triggers.fixed_columns(
                "result_ref", "confirmed_by", name="fixed_evidence",
                unless="OLD.state <> 'OUTCOME_CONFIRMED'",
            ),
            triggers.held_goes_with_approval(),
            triggers.set_once("dispatched_at", "held_at", "key_first_sent_at", "closed_to_sending_at"),
            triggers.open_question_has_item(),
            triggers.never_deleted(),
            triggers.never_truncated(),
        )  # fmt: skip

    def __str__(self) -> str:
        return f"{self.operation_id} #{self.number}"

    @property
    def canonical_args(self) -> bytes | None:
        """The canonical bytes of the arguments; None of a hash-only intent."""
        return None if self.args_bytes is None else bytes(self.args_bytes)

    @property
    def was_sent(self) -> bool:
        """Leave was given, or somebody says it was sent without leave."""
        return self.dispatched_at is not None or self.maybe_sent

    @property
    def is_held(self) -> bool:
        return self.state == State.MANUAL_REVIEW and not self.was_sent

    @property
    def is_final(self) -> bool:
        return self.state in FINAL


class LookUp(TenantRow):
    """One question to the provider about one attempt, with its answer as far as it may be kept."""

    attempt = models.ForeignKey(Attempt, models.PROTECT, related_name="lookups", db_constraint=False)
    provider = models.ForeignKey(Provider, models.PROTECT, null=True, related_name="+", db_constraint=False)
    epoch = models.PositiveIntegerField()
    asked_at = models.DateTimeField(null=True)  # when its lease was taken; null in old rows
    answered_at = models.DateTimeField()
    answer = models.CharField(max_length=20)
    records = models.JSONField(default=list)
    detail = models.CharField(max_length=4000, blank=True)
    row = models.CharField(max_length=50)  # the row of the recovery table that decided, or "stale"
    believed_absent = models.BooleanField(default=False, db_default=False)  # nothing of it happened there

    class Meta:
        indexes = (models.Index("attempt", models.F("answered_at").desc(), name="lookups_of_attempt"),)
        triggers = triggers.append_only()
