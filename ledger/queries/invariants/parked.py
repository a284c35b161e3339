"""Parked facts: none waits for what is known, and what was joined or dismissed says by whom and where."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.rules.vocabulary import EventKind, FactKind

JOINED_WITHIN = "5 minutes"
"""The sweep joins every few seconds what an intent's own transaction did not."""


def no_parked_fact_waits_for_what_is_known(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT fact.tenant_id, fact.id, 'waits although ' || coalesce(attempt.id, operation.id) || ' is known'
        FROM scoped_parkedfact fact
        LEFT JOIN ledger_operation operation ON fact.operation_key <> ''
            AND operation.tenant_id = fact.tenant_id AND operation.operation_key = fact.operation_key
        LEFT JOIN ledger_attempt attempt ON fact.attempt_told <> ''
            AND attempt.tenant_id = fact.tenant_id AND attempt.id = fact.attempt_told
        WHERE fact.joined_at IS NULL
          AND greatest(fact.parked_at, coalesce(attempt.created_at, operation.created_at))
              < clock_timestamp() - %(within)s::interval
          AND coalesce(attempt.id, operation.id) IS NOT NULL
    """
    return scope.select(sql, within=JOINED_WITHIN)


def joined_facts_are_in_the_history(scope: Scope) -> Iterable[Broken]:
    """The attempt a fact was joined to says the same in an event, but for what is hidden in a message."""
    sql = """
        SELECT fact.tenant_id, fact.id, 'is not in the history of ' || attempt_id
        FROM scoped_parkedfact fact CROSS JOIN LATERAL (
            SELECT count(*) AS times FROM ledger_event event
            WHERE event.tenant_id = fact.tenant_id AND event.attempt_id = fact.attempt_id
              AND event.kind = CASE fact.kind WHEN %(outcome)s THEN %(reported)s ELSE %(requested)s END
              AND event.body::jsonb - 'parked' - 'by_revoked_key' - 'message' = fact.body::jsonb - 'message'
        ) told
        WHERE fact.joined_at IS NOT NULL AND told.times = 0
    """
    return scope.select(
        sql,
        outcome=str(FactKind.OUTCOME),
        reported=str(EventKind.OUTCOME_REPORTED),
        requested=str(EventKind.PROVIDER_REQUEST),
    )


def parked_facts_are_applied_at_most_once(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT tenant_id, body::jsonb #>> '{parked,fact}', 'was applied ' || count(*) || ' times'
        FROM scoped_event WHERE body::jsonb #>> '{parked,fact}' IS NOT NULL
        GROUP BY 1, 2 HAVING count(*) > 1
    """)


def dismissals_say_by_whom_and_why(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT fact.tenant_id, fact.id, 'is dismissed by nobody, or open although somebody dismissed it'
        FROM scoped_parkedfact fact
        LEFT JOIN ledger_parkednote note ON note.fact_id = fact.id AND note.dismisses
        WHERE (fact.dismissed_at IS NULL) <> (note.id IS NULL) OR note.why = ''
    """)


CHECKS: tuple[Check, ...] = (
    no_parked_fact_waits_for_what_is_known,
    joined_facts_are_in_the_history,
    parked_facts_are_applied_at_most_once,
    dismissals_say_by_whom_and_why,
)
