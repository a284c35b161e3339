"""Faults in attempts and in the items that ask about them."""

# ruff: noqa: S608 - the statements are put together from our own words

from __future__ import annotations

from ledger.queries.invariants import attempts
from tests.ledger.fsck.fault import Fault, without

NO_CHECKS = without(
    "ledger_attempt", "confirmed_by_someone", "failed_by_someone", "open_has_reason", "final_holds_no_lease",
    "unknown_is_checked_again", "dispatched_has_lease", "args_hash_is_of_the_bytes",
)  # fmt: skip

ATTEMPTS = (
    Fault(
        attempts.state_is_the_fold_of_its_events,
        "unknown",
        "UPDATE ledger_attempt SET state = 'FAILED_RETRYABLE' WHERE id = %(unknown)s",
    ),
    Fault(
        attempts.every_move_is_legal,
        "failed",
        "UPDATE ledger_event SET body = jsonb_set(body::jsonb, '{to}', '\"CANCELLED\"')::text "
        "WHERE attempt_id = %(failed)s AND kind = 'attempt.failed'",
    ),
    Fault(
        attempts.every_move_is_legal,
        "dispatched",
        "UPDATE ledger_event SET body = jsonb_set(body::jsonb, '{from}', '\"UNKNOWN\"')::text "
        "WHERE attempt_id = %(dispatched)s AND kind = 'attempt.dispatched'",
    ),
    Fault(
        attempts.history_begins_with_the_intent,
        "recorded",
        "UPDATE ledger_event SET kind = 'review.noted' WHERE attempt_id = %(recorded)s AND sequence = 1",
    ),
    Fault(
        attempts.attempts_are_numbered_without_gaps,
        "operation:resent",
        "UPDATE ledger_attempt SET number = 3 WHERE id = %(resent)s",
    ),
    Fault(
        attempts.attempts_are_numbered_without_gaps,
        "operation:recorded",
        "DELETE FROM ledger_attempt WHERE id = %(recorded)s",
    ),
    Fault(
        attempts.lineage_stays_within_the_operation,
        "resent",
        "UPDATE ledger_attempt SET descends_from_id = %(recorded)s WHERE id = %(resent)s",
    ),
    Fault(
        attempts.lineage_stays_within_the_operation,
        "replaced",
        "UPDATE ledger_attempt SET descends_from_id = %(resent)s WHERE id = %(replaced)s",
    ),
    Fault(
        attempts.one_attempt_is_live_and_one_confirmed,
        "operation:resent",
        "DROP INDEX one_live_attempt; UPDATE ledger_attempt SET state = 'DISPATCHED', lease_until = now() "
        "WHERE id = %(replaced)s",
    ),
    Fault(
        attempts.one_attempt_is_live_and_one_confirmed,
        "operation:resent",
        "DROP INDEX one_confirmed_attempt; UPDATE ledger_attempt SET state = 'OUTCOME_CONFIRMED', "
        "confirmed_by = 'agent', lease_until = NULL WHERE id IN (%(replaced)s, %(resent)s)",
    ),
    Fault(
        attempts.successors_open_in_their_leave,
        "resent",
        "UPDATE ledger_event SET at = at - interval '1 ms' WHERE attempt_id = %(resent)s "
        "AND kind = 'attempt.intent'",
    ),
    Fault(
        attempts.successors_open_in_their_leave,
        "corrected",
        "UPDATE ledger_event SET kind = 'attempt.manual_review', at = at + interval '1 s' "
        "WHERE attempt_id = %(corrected)s AND kind = 'attempt.held'",
    ),
    Fault(
        attempts.held_is_recorded,
        "held",
        "UPDATE ledger_attempt SET held_at = NULL WHERE id = %(held)s",
    ),
    Fault(
        attempts.held_is_recorded,
        "recorded",
        "UPDATE ledger_attempt SET held_at = now() WHERE id = %(recorded)s",
    ),
    Fault(
        attempts.leave_is_recorded,
        "recorded",
        "UPDATE ledger_attempt SET dispatched_at = now() WHERE id = %(recorded)s",
    ),
    Fault(
        attempts.arguments_hash_to_their_hash,
        "confirmed",
        NO_CHECKS + "UPDATE ledger_attempt SET args_bytes = '{}' WHERE id = %(confirmed)s",
    ),
    Fault(
        attempts.confirmed_has_evidence,
        "confirmed",
        "UPDATE ledger_attempt SET result_ref = '', provider_request_id = '' WHERE id = %(confirmed)s",
    ),
    Fault(
        attempts.confirmed_has_evidence,
        "confirmed",
        "UPDATE ledger_attempt SET confirmed_by = 'lookup' WHERE id = %(confirmed)s",
    ),
    Fault(
        attempts.failed_has_a_ground,
        "failed",
        "UPDATE ledger_attempt SET failed_by = 'operator' WHERE id = %(failed)s",
    ),
    Fault(
        attempts.failed_has_a_ground,
        "failed",
        "UPDATE ledger_attempt SET failed_by = 'not_started', maybe_sent = TRUE WHERE id = %(failed)s",
    ),
    Fault(
        attempts.failed_has_a_ground,
        "failed_there",
        "UPDATE ledger_lookup SET answer = 'unavailable' WHERE attempt_id = %(failed_there)s",
    ),
    Fault(
        attempts.failed_has_a_ground,
        "rejected",
        "UPDATE ledger_decision SET kind = 'note' WHERE attempt_id = %(rejected)s",
    ),
    Fault(
        attempts.confirmed_has_evidence,
        "confirmed_by_person",
        "UPDATE ledger_decision SET kind = 'note' WHERE attempt_id = %(confirmed_by_person)s",
    ),
    Fault(
        attempts.confirmed_has_evidence,
        "looked_up",
        "DELETE FROM ledger_lookup WHERE attempt_id = %(looked_up)s",
    ),
    Fault(
        attempts.unknown_is_checked_again,
        "unknown",
        NO_CHECKS + "UPDATE ledger_attempt SET next_check_at = NULL WHERE id = %(unknown)s",
    ),
    Fault(
        attempts.open_questions_have_one_item,
        "review",
        "UPDATE ledger_reviewitem SET closed_at = now() WHERE attempt_id = %(review)s",
    ),
    Fault(
        attempts.open_questions_have_one_item,
        "held",
        "UPDATE ledger_reviewitem SET reason = 'no_lookup' WHERE attempt_id = %(held)s",
    ),
    Fault(
        attempts.answered_questions_have_no_item,
        "item:approved_sent",
        "UPDATE ledger_reviewitem SET closed_at = NULL WHERE attempt_id = %(approved_sent)s",
    ),
    Fault(
        attempts.open_items_have_an_owner,
        "item:held",
        "UPDATE ledger_reviewitem SET owner_group_id = 0 WHERE attempt_id = %(held)s",
    ),
    Fault(
        attempts.leases_belong_to_their_states,
        "confirmed",
        NO_CHECKS + "UPDATE ledger_attempt SET lease_until = now() WHERE id = %(confirmed)s",
    ),
    Fault(
        attempts.leases_belong_to_their_states,
        "dispatched",
        NO_CHECKS + "UPDATE ledger_attempt SET lease_until = NULL WHERE id = %(dispatched)s",
    ),
)
