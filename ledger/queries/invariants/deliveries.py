"""Outcomes, settlements and deliveries: each settlement is told to exactly those its event lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ledger.models import Attempt, Operation
from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.queries.outcomes import folded
from ledger.rules.outcome import outcome_of
from ledger.rules.states import Outcome
from ledger.rules.vocabulary import EventKind

CHUNK = 2_000


def outcome_is_the_fold_of_the_attempts(scope: Scope) -> Iterator[Broken]:
    attempts = Attempt.objects.order_by("operation_id", "number").defer("args_bytes", "args")
    operations = Operation.objects.all()
    if scope.tenant_id is not None:
        attempts = attempts.filter(tenant_id=scope.tenant_id)
        operations = operations.filter(tenant_id=scope.tenant_id)
    outcomes = dict(operations.values_list("pk", "outcome"))
    rows = groupby(
        attempts.iterator(chunk_size=CHUNK), key=lambda attempt: (attempt.tenant_id, attempt.operation_id)
    )
    for (tenant_id, operation_id), siblings in rows:
        said = outcome_of([folded(attempt) for attempt in siblings])
        stored = outcomes.get(operation_id)
        if said != stored:
            yield Broken(tenant_id, operation_id, f"is {stored}, its attempts say {said}")


def settlements_are_numbered_without_gaps(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT operation.tenant_id, operation.id,
               format('counts %%s settlements and has %%s, the last numbered %%s', settlements_count,
                      count(settlement.id), coalesce(max(number), 0))
        FROM ledger_operation operation
        LEFT JOIN ledger_settlement settlement ON settlement.operation_id = operation.id
        GROUP BY operation.tenant_id, operation.id, settlements_count
        HAVING settlements_count <> count(settlement.id) OR count(settlement.id) <> coalesce(max(number), 0)
    """)


def settled_operations_have_their_settlement(scope: Scope) -> Iterable[Broken]:
    """The outcome of an operation that is not open is what its last settlement said."""
    sql = """
        SELECT operation.tenant_id, operation.id,
               format('is %%s, its last settlement said %%s', operation.outcome,
                      coalesce(last.outcome, 'nothing'))
        FROM ledger_operation operation LEFT JOIN LATERAL (
            SELECT outcome FROM ledger_settlement
            WHERE operation_id = operation.id ORDER BY number DESC LIMIT 1
        ) last ON TRUE
        WHERE operation.outcome <> %(open)s AND last.outcome IS DISTINCT FROM operation.outcome
    """
    return scope.select(sql, open=str(Outcome.OPEN))


def settlements_are_events(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT coalesce(settlement.tenant_id, event.tenant_id),
               coalesce(settlement.operation_id, event.operation_id),
               format('settlement %%s differs from its event',
                      coalesce(settlement.number::text, event.body::jsonb ->> 'number'))
        FROM ledger_settlement settlement
        FULL JOIN (SELECT * FROM ledger_event WHERE kind = %(settled)s) event
          ON event.id = settlement.event_id
        WHERE settlement.id IS NULL OR event.id IS NULL
           OR settlement.operation_id <> event.operation_id OR settlement.attempt_id <> event.attempt_id
           OR settlement.number::text <> event.body::jsonb ->> 'number'
           OR settlement.outcome <> event.body::jsonb ->> 'outcome'
    """
    return scope.select(sql, settled=str(EventKind.SETTLED))


def deliveries_are_those_listed(scope: Scope) -> Iterable[Broken]:
    sql = """
        WITH listed AS (
            SELECT settlement.tenant_id, settlement.operation_id, settlement.id AS settlement_id,
                   line ->> 'id' AS delivery_id, line ->> 'destination' AS destination_id
            FROM ledger_settlement settlement
            JOIN ledger_event event ON event.id = settlement.event_id
            CROSS JOIN LATERAL jsonb_array_elements(event.body::jsonb -> 'deliveries') line
        )
        SELECT coalesce(delivery.tenant_id, listed.tenant_id), coalesce(delivery.id, listed.delivery_id),
               CASE WHEN delivery.id IS NULL THEN 'is listed by a settlement and missing'
                    WHEN listed.delivery_id IS NULL THEN 'is listed by no settlement'
                    ELSE 'is of another settlement or destination than listed' END
        FROM listed FULL JOIN ledger_delivery delivery ON delivery.id = listed.delivery_id
        WHERE delivery.id IS NULL OR listed.delivery_id IS NULL
           OR delivery.settlement_id <> listed.settlement_id OR delivery.operation_id <> listed.operation_id
           OR delivery.destination_id <> listed.destination_id
    """
    return scope.select(sql)


def undelivered_has_a_next_time(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT tenant_id, id, format('is %%s and nothing will send it', state) FROM ledger_delivery
        WHERE state IN ('PENDING', 'SENT') AND next_at IS NULL AND held_at IS NULL
    """)


CHECKS: tuple[Check, ...] = (
    outcome_is_the_fold_of_the_attempts,
    settlements_are_numbered_without_gaps,
    settled_operations_have_their_settlement,
    settlements_are_events,
    deliveries_are_those_listed,
    undelivered_has_a_next_time,
)
