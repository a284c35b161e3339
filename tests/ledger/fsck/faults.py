"""One fault for each invariant, or several."""

# ruff: noqa: S608 - the statements are put together from our own words

from __future__ import annotations

from ledger.queries.invariants import approvals, budgets, deliveries, history
from tests.ledger.fsck.fault import Fault, without
from tests.ledger.fsck.faults_of_attempts import ATTEMPTS
from tests.ledger.fsck.faults_of_deliveries import DELIVERY_STATES
from tests.ledger.fsck.faults_of_parked import PARKED
from tests.ledger.fsck.faults_of_statements import STATEMENTS
from tests.ledger.fsck.faults_of_the_system import PAGES, SYSTEM, TENANCY

_VOTE_OF_SENT = "WHERE approval_id = %(approved_sent_approval)s"


APPROVALS = (
    Fault(
        approvals.votes_recompute,
        "vote:approved_sent",
        f"UPDATE ledger_vote SET meaning = 'Something else' {_VOTE_OF_SENT}",
    ),
    Fault(
        approvals.votes_recompute,
        "vote:approved_sent",
        "UPDATE ledger_attempt SET args_hash = 'v1:sha256:0', args_bytes = NULL WHERE id = %(approved_sent)s",
    ),
    Fault(
        approvals.approvals_have_their_quorum,
        "approved_sent_approval",
        f"DELETE FROM ledger_vote WHERE id = (SELECT min(id) FROM ledger_vote {_VOTE_OF_SENT})",
    ),
    Fault(
        approvals.approvals_have_their_quorum,
        "approved_sent_approval",
        "DROP INDEX approval_by_distinct_people; "
        f"UPDATE ledger_vote SET approver_id = (SELECT min(approver_id) FROM ledger_vote {_VOTE_OF_SENT}) "
        f"{_VOTE_OF_SENT}",
    ),
    Fault(
        approvals.approvals_have_votes_in_their_time,
        "approved_sent_approval",
        f"DELETE FROM ledger_vote {_VOTE_OF_SENT}",
    ),
    Fault(
        approvals.approvals_have_votes_in_their_time,
        "approved_sent_approval",
        "UPDATE ledger_approval SET expires_at = expires_at + interval '1 hour' "
        "WHERE id = %(approved_sent_approval)s",
    ),
    Fault(
        approvals.approvals_are_used_at_most_once,
        "approved_sent_approval",
        "UPDATE ledger_approval SET used_at = NULL WHERE id = %(approved_sent_approval)s",
    ),
    Fault(
        approvals.approvals_are_used_at_most_once,
        "approved_sent_approval",
        "UPDATE ledger_approvaluse SET approval_id = %(approved_approval)s "
        "WHERE approval_id = %(approved_sent_approval)s",
    ),
    Fault(
        approvals.approvals_are_used_in_their_time,
        "approved_sent_approval",
        "UPDATE ledger_approvaluse SET at = at + interval '1 day' "
        "WHERE approval_id = %(approved_sent_approval)s",
    ),
    Fault(
        approvals.uses_equal_what_was_sent,
        "approved_sent",
        "UPDATE ledger_approvaluse SET args_hash = 'v1:sha256:0' WHERE attempt_id = %(approved_sent)s",
    ),
    Fault(
        approvals.uses_equal_what_was_sent,
        "sent_again",
        "UPDATE ledger_attempt SET rule_hash = 'v1:sha256:0' WHERE id = %(sent_again)s",
    ),
    Fault(
        approvals.sends_with_approval_have_their_use,
        "approved_sent",
        "DELETE FROM ledger_approvaluse WHERE attempt_id = %(approved_sent)s",
    ),
    Fault(
        approvals.sends_with_approval_have_their_use,
        "sent_again",
        "DELETE FROM ledger_approvaluse WHERE attempt_id = %(sent_again)s",
    ),
    Fault(
        approvals.first_sends_seen_by_people_use_an_approval,
        "approved_sent",
        "DELETE FROM ledger_approvaluse WHERE attempt_id = %(approved_sent)s",
    ),
    Fault(
        approvals.what_was_held_waits_with_its_approval,
        "approved",
        "UPDATE ledger_approval SET voided_at = now() WHERE id = %(approved_approval)s",
    ),
    Fault(
        approvals.approvers_were_not_in_conflict,
        "vote:approved_sent",
        "UPDATE ledger_attempt SET requested_by_id = (SELECT min(approver_id) FROM ledger_vote "
        f"{_VOTE_OF_SENT}) "
        "WHERE id = %(approved_sent)s",
    ),
    Fault(
        approvals.approvers_had_not_changed_the_rule,
        "vote:approved_sent",
        "UPDATE ledger_policysnapshot SET published_by_id = (SELECT min(approver_id) FROM ledger_vote "
        f"{_VOTE_OF_SENT}) WHERE tenant_id = %(tenant)s",
    ),
    Fault(
        approvals.approvers_had_not_changed_the_rule,
        "vote:approved_sent",
        "INSERT INTO ledger_policysnapshot (tenant_id, version, document, content_hash, published_by_id, "
        "published_at) SELECT tenant_id, version + 1, "
        "jsonb_set(document, '{tools,fund.move,approvals}', '1'), "
        f"'x', (SELECT min(approver_id) FROM ledger_vote {_VOTE_OF_SENT}), now() - interval '1 day' "
        "FROM ledger_policysnapshot WHERE tenant_id = %(tenant)s ORDER BY version DESC LIMIT 1",
    ),
    Fault(
        approvals.approvers_of_danger_had_not_edited_lately,
        "vote:approved_sent",
        "INSERT INTO ledger_policysnapshot (tenant_id, version, document, content_hash, published_by_id, "
        "published_at) SELECT tenant_id, version + 1, "
        "jsonb_set(document, '{tools,fund.move,approvals}', '1'), "
        f"'x', (SELECT min(approver_id) FROM ledger_vote {_VOTE_OF_SENT}), now() - interval '1 hour' "
        "FROM ledger_policysnapshot WHERE tenant_id = %(tenant)s ORDER BY version DESC LIMIT 1",
    ),
    Fault(
        approvals.approvers_of_danger_had_not_edited_lately,
        "vote:approved_sent",
        "UPDATE ledger_attempt SET arguments_by_id = (SELECT min(approver_id) FROM ledger_vote "
        f"{_VOTE_OF_SENT}), created_at = created_at - interval '1 minute' WHERE id = %(approved_sent)s",
    ),
    Fault(
        approvals.votes_are_decisions_of_their_approver,
        "vote:approved_sent",
        "UPDATE ledger_decision SET kind = 'note' WHERE attempt_id = %(approved_sent)s",
    ),
)

DELIVERIES = (
    Fault(
        deliveries.outcome_is_the_fold_of_the_attempts,
        "operation:confirmed",
        "UPDATE ledger_operation SET outcome = 'failed' WHERE id = %(operation_confirmed)s",
    ),
    Fault(
        deliveries.settlements_are_numbered_without_gaps,
        "operation:confirmed",
        "UPDATE ledger_operation SET settlements_count = 2 WHERE id = %(operation_confirmed)s",
    ),
    Fault(
        deliveries.settled_operations_have_their_settlement,
        "operation:confirmed",
        "DELETE FROM ledger_settlement WHERE attempt_id = %(confirmed)s",
    ),
    Fault(
        deliveries.settlements_are_events,
        "operation:confirmed",
        "UPDATE ledger_settlement SET outcome = 'failed' WHERE attempt_id = %(confirmed)s",
    ),
    Fault(
        deliveries.settlements_are_events,
        "operation:confirmed",
        "DELETE FROM ledger_settlement WHERE attempt_id = %(confirmed)s",
    ),
    Fault(
        deliveries.deliveries_are_those_listed,
        "delivery:confirmed",
        "DELETE FROM ledger_delivery WHERE id = %(delivery)s",
    ),
    Fault(
        deliveries.deliveries_are_those_listed,
        "dlv_unlisted",
        "INSERT INTO ledger_delivery (id, tenant_id, operation_id, settlement_id, destination_id, "
        "webhook_id, state, created_at, next_at) SELECT 'dlv_unlisted', tenant_id, operation_id, "
        "settlement_id, 'dst_other', 'msg_x', 'PENDING', created_at, next_at "
        "FROM ledger_delivery WHERE id = %(delivery)s",
        touched="confirmed",
    ),
    Fault(
        deliveries.undelivered_has_a_next_time,
        "delivery:confirmed",
        without("ledger_delivery", "undelivered_has_a_next_time")
        + "UPDATE ledger_delivery SET next_at = NULL WHERE id = %(delivery)s",
    ),
    Fault(
        deliveries.no_send_follows_from_a_delivery,
        "dispatched",
        "UPDATE ledger_event SET actor_kind = 'system' WHERE attempt_id = %(dispatched)s "
        "AND kind = 'attempt.dispatched'",
    ),
)

BUDGETS = (
    Fault(
        budgets.accounts_are_the_sums_of_their_entries,
        "account",
        "UPDATE ledger_budgetaccount SET spent = spent + 1 WHERE id = %(account)s",
        touched="confirmed",
    ),
    Fault(
        budgets.accounts_are_the_sums_of_their_entries,
        "euros",
        "UPDATE ledger_budgetaccount SET reserved = reserved - 0.00000001 WHERE id = %(euros)s",
        touched="fee_paid",
    ),
    Fault(
        budgets.overruns_are_told,
        "euros",
        "DELETE FROM ledger_event WHERE kind = 'budget.overrun' AND attempt_id = %(fee_paid)s",
        touched="fee_paid",
    ),
    Fault(
        budgets.overruns_are_told,
        "account",
        'UPDATE ledger_budgetaccount SET "limit" = 1 WHERE id = %(account)s',
        touched="confirmed",
    ),
    Fault(
        budgets.what_may_still_happen_is_reserved,
        "unknown",
        "DELETE FROM ledger_budgetentry WHERE attempt_id = %(unknown)s",
    ),
    Fault(
        budgets.what_may_still_happen_is_reserved,
        "confirmed",
        "DELETE FROM ledger_budgetentry WHERE attempt_id = %(confirmed)s AND kind = 'POST'",
    ),
    Fault(
        budgets.what_may_still_happen_is_reserved,
        "fee_sent",
        "INSERT INTO ledger_budgetentry (tenant_id, account_id, attempt_id, kind, reserved_change, "
        "spent_change, usage_id, at) SELECT tenant_id, %(euros)s, id, 'VOID', -0.01, 0, '', now() "
        "FROM ledger_attempt WHERE id = %(fee_sent)s",
    ),
    Fault(
        budgets.what_may_still_happen_is_reserved,
        "fee_paid",
        "DELETE FROM ledger_budgetentry WHERE attempt_id = %(fee_paid)s AND kind = 'POST' "
        "AND account_id = %(euros)s",
    ),
    Fault(
        budgets.reservations_are_what_the_arguments_cost,
        "fee_unknown",
        "DELETE FROM ledger_budgetentry WHERE attempt_id = %(fee_unknown)s AND account_id = %(euros)s",
    ),
    Fault(
        budgets.reservations_are_what_the_arguments_cost,
        "fee_sent",
        "UPDATE ledger_budgetentry SET reserved_change = 12.49 WHERE attempt_id = %(fee_sent)s "
        "AND account_id = %(euros)s",
    ),
    Fault(
        budgets.reservations_end_whole,
        "confirmed",
        "DELETE FROM ledger_budgetentry WHERE attempt_id = %(confirmed)s AND kind = 'RESERVE'",
    ),
    Fault(
        budgets.entries_stay_in_their_run,
        "confirmed",
        "UPDATE ledger_operation SET run_id = NULL WHERE id = %(operation_confirmed)s",
    ),
    Fault(
        budgets.what_may_still_happen_is_reserved,
        "unknown",
        "INSERT INTO ledger_budgetentry (tenant_id, account_id, attempt_id, kind, reserved_change, "
        "spent_change, usage_id, at) SELECT tenant_id, account_id, attempt_id, kind, 1, 0, '', at "
        "FROM ledger_budgetentry WHERE attempt_id = %(unknown)s AND kind = 'RESERVE'",
    ),
    Fault(
        budgets.what_happened_is_posted,
        "confirmed",
        "DELETE FROM ledger_budgetentry WHERE attempt_id = %(confirmed)s AND kind = 'POST'",
    ),
    Fault(
        budgets.what_did_not_happen_costs_nothing,
        "failed",
        "UPDATE ledger_budgetentry SET spent_change = 1 WHERE attempt_id = %(failed)s AND kind = 'VOID'",
    ),
)

HISTORY = (
    Fault(
        history.histories_are_whole_and_unedited,
        "operation:confirmed",
        "UPDATE ledger_event SET actor = 'somebody else' WHERE attempt_id = %(confirmed)s AND sequence = 2",
    ),
    Fault(
        history.histories_are_whole_and_unedited,
        "operation:confirmed",
        "DELETE FROM ledger_event WHERE attempt_id = %(confirmed)s AND sequence = 2",
    ),
    Fault(
        history.histories_are_whole_and_unedited,
        "operation:confirmed",
        "DELETE FROM ledger_event USING ledger_operation WHERE operation_id = ledger_operation.id "
        "AND ledger_operation.id = %(operation_confirmed)s AND sequence = event_count",
    ),
    Fault(
        history.histories_are_whole_and_unedited,
        "operation:confirmed",
        "UPDATE ledger_operation SET event_count = event_count - 1 WHERE id = %(operation_confirmed)s",
    ),
    Fault(
        history.every_operation_has_a_history,
        "operation:recorded",
        "DELETE FROM ledger_event WHERE attempt_id = %(recorded)s",
    ),
    Fault(
        history.heads_are_the_last_events,
        "operation:confirmed",
        "UPDATE ledger_operation SET head_hash = 'v1:sha256:0' WHERE id = %(operation_confirmed)s",
    ),
    Fault(
        history.events_belong_to_an_operation,
        "event:recorded",
        "DELETE FROM ledger_operation WHERE id = %(operation_recorded)s",
    ),
)

FAULTS = (
    *ATTEMPTS,
    *APPROVALS,
    *DELIVERIES,
    *DELIVERY_STATES,
    *BUDGETS,
    *HISTORY,
    *PARKED,
    *STATEMENTS,
    *TENANCY,
    *SYSTEM,
    *PAGES,
)
