"""The closed lists of words: reasons, actors, events, decisions. Pages, API and database use these and no
others."""

from __future__ import annotations

from enum import StrEnum


class Effect(StrEnum):
    """What kind of change a tool makes to the world."""

    READ = "read"
    MESSAGE = "message"
    PAYMENT = "payment"
    DELETION = "deletion"
    DEPLOYMENT = "deployment"
    WRITE = "write"


HIGH_RISK = frozenset({Effect.PAYMENT, Effect.DELETION, Effect.DEPLOYMENT})
"""Two people approve these, unless a rule says otherwise, and the queue shows them first."""


class ReviewReason(StrEnum):
    """Why an attempt waits for a person; the closed list."""

    UNKNOWN = "unknown"
    NO_LOOKUP = "no_lookup"
    ADAPTER_FAILING = "adapter_failing"
    UNRESOLVED = "unresolved"
    SEVERAL_MATCHES = "several_matches"
    HASH_MISMATCH = "hash_mismatch"
    REVERSED = "reversed"
    CONFLICTING_EVIDENCE = "conflicting_evidence"
    NOT_IDEMPOTENT = "not_idempotent"
    KEY_WINDOW_OVER = "key_window_over"
    AUTHORITY_REFUSED = "authority_refused"
    ATTEMPTS_USED_UP = "attempts_used_up"
    APPROVAL_REQUIRED = "approval_required"
    APPROVAL_EXPIRED = "approval_expired"
    ARGUMENTS_CHANGED = "arguments_changed"
    POLICY_CHANGED = "policy_changed"
    SUSPECTED_DUPLICATE = "suspected_duplicate"
    SENT_WITHOUT_LEAVE = "sent_without_leave"


RECEIPT_IS_ONLY_EVIDENCE = frozenset(
    {
        ReviewReason.HASH_MISMATCH,
        ReviewReason.REVERSED,
        ReviewReason.SEVERAL_MATCHES,
        ReviewReason.CONFLICTING_EVIDENCE,
    }
)
"""Under these a late receipt settles nothing: it is one more piece of a contradiction."""


WHETHER_TO_SEND = frozenset(
    {
        ReviewReason.NOT_IDEMPOTENT,
        ReviewReason.KEY_WINDOW_OVER,
        ReviewReason.AUTHORITY_REFUSED,
        ReviewReason.ATTEMPTS_USED_UP,
        ReviewReason.APPROVAL_REQUIRED,
        ReviewReason.APPROVAL_EXPIRED,
        ReviewReason.POLICY_CHANGED,
        ReviewReason.SUSPECTED_DUPLICATE,
    }
)
"""Under these a person is asked whether to send. Where that is answered, of what was sent already it is left
to find out whether it happened."""


class Escalation(StrEnum):
    """Why time alone calls people to an item they have not decided."""

    KEY_WINDOW_CLOSING = "key_window_closing"
    OVERDUE = "overdue"


class ActorKind(StrEnum):
    """Who changed something."""

    AGENT = "agent"
    OPERATOR = "operator"
    RECONCILER = "reconciler"
    SENDER = "sender"
    SYSTEM = "system"


class EventKind(StrEnum):
    """The names of all events; `<noun>.<what happened>`."""

    INTENT = "attempt.intent"
    HELD = "attempt.held"
    DISPATCHED = "attempt.dispatched"
    UNKNOWN = "attempt.unknown"
    REVIEW = "attempt.manual_review"
    RETRYABLE = "attempt.failed_retryable"
    CONFIRMED = "attempt.confirmed"
    FAILED = "attempt.failed"
    CANCELLED = "attempt.cancelled"
    SUPERSEDED = "attempt.superseded"
    APPROVED = "attempt.approved"
    RULE_RELINKED = "attempt.rule_relinked"
    LEAVE_REFUSED = "attempt.leave_refused"
    LEASE_EXTENDED = "attempt.lease_extended"
    PROVIDER_REQUEST = "attempt.provider_request"
    OUTCOME_REPORTED = "attempt.outcome_reported"
    VARIANT_SEEN = "attempt.variant_seen"
    POSTED_AGAIN = "attempt.posted_again"
    LOOKED_UP = "attempt.looked_up"
    CONFLICT = "attempt.conflict"
    REASON_CHANGED = "review.reason_changed"
    ESCALATED = "review.escalated"
    ASSIGNED = "review.assigned"
    CLAIMED = "review.claimed"
    RELEASED = "review.released"
    TAKEN_OVER = "review.taken_over"
    HANDED_OVER = "review.handed_over"
    SNOOZED = "review.snoozed"
    WOKEN = "review.woken"
    WAITS_ON = "review.waits_on"
    NOTED = "review.noted"
    WITHDRAWN = "review.withdrawn"
    VOTED = "review.voted"
    VOTE_VOIDED = "review.vote_voided"
    STATED = "review.stated"
    DECIDED = "review.decided"
    APPROVAL_VOIDED = "approval.voided"
    APPROVAL_GIVEN = "approval.given"
    APPROVAL_EXPIRED = "approval.expired"
    OPERATION_CANCELLED = "operation.cancelled"
    SETTLED = "operation.settled"
    DELIVERY_SENT = "delivery.sent"
    DELIVERY_ACKED = "delivery.acked"
    DELIVERY_DEAD_LETTERED = "delivery.dead_lettered"
    DELIVERY_REDELIVERED = "delivery.redelivered"
    OVERRUN = "budget.overrun"
    CONFLICT_DECIDED = "attempt.conflict_decided"


class AccessChangeKind(StrEnum):
    """What is done to who may do what in a tenant."""

    ROLE_GIVEN = "role_given"
    ROLE_TAKEN = "role_taken"
    SCOPE_GIVEN = "scope_given"
    SCOPE_TAKEN = "scope_taken"
    SWITCHED_OFF = "switched_off"
    SWITCHED_ON = "switched_on"
    AGENT_CREATED = "agent_created"
    AGENT_GIVEN = "agent_given"
    KEY_CREATED = "key_created"
    KEY_ROTATED = "key_rotated"
    KEY_REVOKED = "key_revoked"
    POLICY_PUBLISHED = "policy_published"
    ACCOUNT_MADE = "account_made"
    LINK_MADE = "link_made"
    PASSWORD_SET = "password_set"  # noqa: S105 - the name of a change
    AGENT_SWITCHED_OFF = "agent_switched_off"
    AGENT_SWITCHED_ON = "agent_switched_on"


class FactKind(StrEnum):
    """What an agent can say about a send, also before the ledger knows of it."""

    OUTCOME = "outcome"
    PROVIDER_REQUEST = "provider_request"


class DecisionKind(StrEnum):
    """What a person chose about a review item."""

    APPROVE = "approve"
    REJECT = "reject"
    CONFIRM_HAPPENED = "confirm_happened"
    CONFIRM_DID_NOT = "confirm_did_not_happen"
    RELINK_ARGUMENTS = "relink_arguments"
    RELINK_RECORD = "relink_record"
    RELINK_OPERATION = "relink_operation"
    INTENDED_REPEAT = "intended_repeat"
    RECHECK = "recheck"
    CONFLICT_HAPPENED = "conflict_happened"
    CONFLICT_DUPLICATE = "conflict_duplicate"
    CONFLICT_STANDS = "conflict_stands"
    ASSIGN = "assign"
    CLAIM = "claim"
    RELEASE = "release"
    TAKE_OVER = "take_over"
    HAND_OVER = "hand_over"
    SNOOZE = "snooze"
    WAKE = "wake"
    WAIT_ON = "wait_on"
    NOTE = "note"


OWNERSHIP = frozenset(
    {
        DecisionKind.ASSIGN,
        DecisionKind.CLAIM,
        DecisionKind.RELEASE,
        DecisionKind.TAKE_OVER,
        DecisionKind.HAND_OVER,
        DecisionKind.SNOOZE,
        DecisionKind.WAKE,
        DecisionKind.WAIT_ON,
        DecisionKind.NOTE,
    }
)
"""Whose an item is: these decide nothing about its attempt."""


class FailedBy(StrEnum):
    """On whose word an attempt is FAILED."""

    AGENT = "agent"
    LOOKUP = "lookup"
    OPERATOR = "operator"
    NOT_STARTED = "not_started"


class ConfirmedBy(StrEnum):
    """On whose evidence an attempt is OUTCOME_CONFIRMED."""

    AGENT = "agent"
    LOOKUP = "lookup"
    OPERATOR = "operator"
