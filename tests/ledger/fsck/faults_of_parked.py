"""Faults of facts that were parked."""

# ruff: noqa: S608 - the statements are put together from our own words

from __future__ import annotations

from ledger.queries.invariants import parked, system, tenancy
from tests.ledger.fsck.fault import NOWHERE, Fault, without

_LONG_AGO = (
    "UPDATE ledger_parkedfact SET parked_at = parked_at - interval '1 hour', "
    "joined_at = NULL, attempt_id = NULL WHERE id = %(joined_fact)s; "
    "UPDATE ledger_attempt SET created_at = created_at - interval '1 hour' WHERE id = %(early)s; "
    "UPDATE ledger_operation SET created_at = created_at - interval '1 hour' WHERE operation_key = 'early'"
)

PARKED = (
    Fault(parked.no_parked_fact_waits_for_what_is_known, "joined_fact", _LONG_AGO, touched=NOWHERE),
    Fault(
        parked.no_parked_fact_waits_for_what_is_known,
        "joined_fact",
        _LONG_AGO
        + "; UPDATE ledger_parkedfact SET operation_key = '', attempt_told = %(early)s "
        + "WHERE id = %(joined_fact)s",
        touched=NOWHERE,
    ),
    Fault(
        parked.joined_facts_are_in_the_history,
        "joined_fact",
        "UPDATE ledger_parkedfact SET attempt_id = %(recorded)s WHERE id = %(joined_fact)s",
        touched="recorded",
    ),
    Fault(
        parked.joined_facts_are_in_the_history,
        "joined_fact",
        'UPDATE ledger_parkedfact SET body = \'{"outcome":"failed"}\' WHERE id = %(joined_fact)s',
        touched="early",
    ),
    Fault(
        parked.parked_facts_are_applied_at_most_once,
        "joined_fact",
        "INSERT INTO ledger_event (id, sequence, kind, actor_kind, actor, body, at, previous_hash, hash, "
        "attempt_id, operation_id, tenant_id) SELECT 'evt_again', sequence + 90, kind, actor_kind, actor, "
        "body, at, previous_hash, hash, attempt_id, operation_id, tenant_id FROM ledger_event "
        "WHERE attempt_id = %(early)s AND kind = 'attempt.outcome_reported'",
        touched="early",
    ),
    Fault(
        parked.dismissals_say_by_whom_and_why,
        "dismissed_fact",
        "DELETE FROM ledger_parkednote WHERE fact_id = %(dismissed_fact)s",
        touched=NOWHERE,
    ),
    Fault(
        parked.dismissals_say_by_whom_and_why,
        "dismissed_fact",
        "UPDATE ledger_parkednote SET why = '' WHERE fact_id = %(dismissed_fact)s",
        touched=NOWHERE,
    ),
    Fault(
        tenancy.references_stay_within_the_tenant,
        "ledger_parkedfact:*",
        "UPDATE ledger_parkedfact SET attempt_id = "
        "(SELECT id FROM ledger_attempt WHERE operation_id = %(other_operation)s) WHERE id = %(joined_fact)s",
        touched=NOWHERE,
    ),
    Fault(
        system.constraints_are_there,
        "ledger_parkedfact fact_told_once",
        "DROP INDEX fact_told_once",
    ),
    Fault(
        system.wall_is_complete,
        "wall_parkedfact_told_by_id",
        without("ledger_parkedfact", "wall_parkedfact_told_by_id"),
    ),
    Fault(
        system.triggers_are_there_and_enabled,
        "ledger_parkednote pgtrigger_append_only_*",
        "ALTER TABLE ledger_parkednote DISABLE TRIGGER USER",
    ),
)
