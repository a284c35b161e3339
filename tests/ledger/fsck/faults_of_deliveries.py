"""Faults of a delivery: its state, its tries, and what acknowledged it."""

from __future__ import annotations

from ledger.queries.invariants import deliveries, delivery_states, tenancy
from tests.ledger.fsck.fault import Fault

DELIVERY_STATES = (
    Fault(
        delivery_states.delivery_state_is_the_fold_of_its_events,
        "delivery:acked",
        "UPDATE ledger_delivery SET state = 'SENT', next_at = now() WHERE id = %(delivery_acked)s",
    ),
    Fault(
        delivery_states.delivery_state_is_the_fold_of_its_events,
        "delivery:sent",
        "UPDATE ledger_delivery SET state = 'PENDING' WHERE id = %(delivery_sent)s",
    ),
    Fault(
        delivery_states.delivery_state_is_the_fold_of_its_events,
        "delivery:dead",
        "INSERT INTO ledger_event (id, tenant_id, operation_id, attempt_id, sequence, kind, actor_kind, "
        "actor, body, at, previous_hash, hash, written_in) SELECT 'evt_x', tenant_id, operation_id, NULL, "
        "sequence + 9, kind, actor_kind, actor, body, at, previous_hash, hash, written_in FROM ledger_event "
        "WHERE kind = 'delivery.dead_lettered' AND body::jsonb ->> 'delivery' = %(delivery_dead)s",
    ),
    Fault(
        delivery_states.delivery_events_are_of_a_delivery,
        "evt_*",
        "DELETE FROM ledger_delivery WHERE id = %(delivery_acked)s",
        touched="acked",
    ),
    Fault(
        delivery_states.tries_are_numbered_without_gaps,
        "delivery:sent",
        "DELETE FROM ledger_deliverytry WHERE delivery_id = %(delivery_sent)s",
    ),
    Fault(
        delivery_states.tries_are_numbered_without_gaps,
        "delivery:acked",
        "UPDATE ledger_deliverytry SET number = 7 WHERE delivery_id = %(delivery_acked)s AND number = 1",
    ),
    Fault(
        delivery_states.tries_are_numbered_without_gaps,
        "delivery:sent",
        "UPDATE ledger_delivery SET lease_epoch = lease_epoch - 1 WHERE id = %(delivery_sent)s",
    ),
    Fault(
        delivery_states.tries_are_numbered_without_gaps,
        "delivery:sent",
        "UPDATE ledger_delivery SET tries_before = tries + 1 WHERE id = %(delivery_sent)s",
    ),
    Fault(
        delivery_states.ended_tries_say_how,
        "delivery:sent",
        "UPDATE ledger_deliverytry SET ended_as = NULL WHERE delivery_id = %(delivery_sent)s",
    ),
    Fault(
        delivery_states.acknowledged_means_acked,
        "delivery:acked",
        "DELETE FROM ledger_deliveryack WHERE delivery_id = %(delivery_acked)s",
    ),
    Fault(
        delivery_states.acknowledged_means_acked,
        "delivery:acked",
        "UPDATE ledger_delivery SET acked_at = acked_at - interval '1 second' WHERE id = %(delivery_acked)s",
    ),
    Fault(
        delivery_states.acknowledged_means_acked,
        "delivery:sent",
        "INSERT INTO ledger_deliveryack (tenant_id, delivery_id, duplicate, at) "
        "SELECT tenant_id, id, FALSE, now() FROM ledger_delivery WHERE id = %(delivery_sent)s",
    ),
    Fault(
        delivery_states.acknowledged_by_a_2xx_means_received,
        "delivery:acked",
        "UPDATE ledger_deliverytry SET ended_as = 'unavailable' WHERE delivery_id = %(delivery_acked)s",
    ),
    Fault(
        delivery_states.sent_means_perhaps_received,
        "delivery:sent",
        "UPDATE ledger_deliverytry SET ended_as = 'not_connected' WHERE delivery_id = %(delivery_sent)s",
    ),
    Fault(
        delivery_states.dead_letters_have_reason_and_owner,
        "delivery:dead",
        "ALTER TABLE ledger_delivery DROP CONSTRAINT dead_has_reason_and_owner; "
        "UPDATE ledger_delivery SET owner_group_id = NULL WHERE id = %(delivery_dead)s",
    ),
    Fault(
        delivery_states.dead_letters_have_reason_and_owner,
        "delivery:dead",
        "ALTER TABLE ledger_delivery DROP CONSTRAINT dead_has_reason_and_owner; "
        "UPDATE ledger_delivery SET dead_reason = '' WHERE id = %(delivery_dead)s",
    ),
    Fault(
        delivery_states.dead_letters_have_reason_and_owner,
        "delivery:dead",
        "UPDATE ledger_delivery SET next_at = now() WHERE id = %(delivery_dead)s",
    ),
    Fault(
        delivery_states.what_is_held_is_not_due,
        "delivery:sent",
        "UPDATE ledger_delivery SET held_at = now() WHERE id = %(delivery_sent)s",
    ),
    Fault(
        delivery_states.what_was_tried_has_its_body,
        "delivery:sent",
        "UPDATE ledger_delivery SET body = NULL WHERE id = %(delivery_sent)s",
    ),
    Fault(
        tenancy.references_stay_within_the_tenant,
        "ledger_delivery:*",
        "UPDATE ledger_delivery SET destination_id = %(other_destination)s WHERE id = %(delivery_sent)s",
        touched="sent",
    ),
    Fault(
        tenancy.references_stay_within_the_tenant,
        "ledger_deliverytry:*",
        "UPDATE ledger_deliverytry SET tenant_id = %(other_tenant)s WHERE delivery_id = %(delivery_sent)s",
        touched="sent",
    ),
    Fault(
        deliveries.no_send_follows_from_a_delivery,
        "sent",
        "UPDATE ledger_event SET actor_kind = 'system', actor = 'deliveries' WHERE attempt_id = %(sent)s "
        "AND kind = 'attempt.dispatched'",
    ),
)
