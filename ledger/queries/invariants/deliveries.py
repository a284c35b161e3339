"""Outcomes, settlements and deliveries: each settlement is told to exactly those its event lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ledger.models import Attempt
from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.queries.outcomes import folded
from ledger.rules.outcome import outcome_of
from ledger.rules.states import Outcome
from ledger.rules.vocabulary import ActorKind, EventKind

CHUNK = 2_000
_FOLDED = (
    "tenant_id", "operation_id", "number", "descends_from_id", "state", "dispatched_at", "maybe_sent",
    "relinked_to_id", "failure", "operation__outcome",
)  # fmt: skip


def outcome_is_the_fold_of_the_attempts(scope: Scope) -> Iterator[Broken]:
    attempts = Attempt.objects.select_related("operation").only(*_FOLDED).order_by("operation_id", "number")
    rows = scope.rows(attempts).iterator(chunk_size=CHUNK)
    for _, group in groupby(rows, key=lambda attempt: attempt.operation_id):
        siblings = list(group)
        said, stored = outcome_of([folded(attempt) for attempt in siblings]), siblings[0].operation.outcome
        if said != stored:
            detail = f"is {stored}, its attempts say {said}"
            yield Broken(siblings[0].tenant_id, siblings[0].operation_id, detail)


def settlements_are_numbered_without_gaps(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT operation.tenant_id, operation.id,
               format('counts %%s settlements and has %%s, the last numbered %%s', settlements_count,
                      count(settlement.id), coalesce(max(number), 0))
        FROM scoped_operation operation
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
        FROM scoped_operation operation LEFT JOIN LATERAL (
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
        FROM scoped_settlement settlement
        FULL JOIN (SELECT * FROM scoped_event WHERE kind = %(settled)s) event
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
            FROM scoped_settlement settlement
            JOIN ledger_event event ON event.id = settlement.event_id
            CROSS JOIN LATERAL jsonb_array_elements(event.body::jsonb -> 'deliveries') line
        )
        SELECT coalesce(delivery.tenant_id, listed.tenant_id), coalesce(delivery.id, listed.delivery_id),
               CASE WHEN delivery.id IS NULL THEN 'is listed by a settlement and missing'
                    WHEN listed.delivery_id IS NULL THEN 'is listed by no settlement'
                    ELSE 'is of another settlement or destination than listed' END
        FROM listed FULL JOIN scoped_delivery delivery ON delivery.id = listed.delivery_id
        WHERE delivery.id IS NULL OR listed.delivery_id IS NULL
           OR delivery.settlement_id <> listed.settlement_id OR delivery.operation_id <> listed.operation_id
           OR delivery.destination_id <> listed.destination_id
    """
    return scope.select(sql)


def undelivered_has_a_next_time(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT tenant_id, id, format('is %%s and nothing will send it', state) FROM scoped_delivery
        WHERE state IN ('PENDING', 'SENT') AND next_at IS NULL AND held_at IS NULL
    """)


def no_send_follows_from_a_delivery(scope: Scope) -> Iterable[Broken]:
    """Leave is asked for by an agent, or by the ledger's own sender in its place; by nobody else."""
    sql = """
        SELECT tenant_id, attempt_id, format('was given leave by %%s (%%s)', actor_kind, actor)
        FROM scoped_event WHERE kind = %(dispatched)s AND actor_kind <> ALL(%(senders)s)
    """
    senders = [str(ActorKind.AGENT), str(ActorKind.SENDER)]
    return scope.select(sql, dispatched=str(EventKind.DISPATCHED), senders=senders)


CHECKS: tuple[Check, ...] = (
    outcome_is_the_fold_of_the_attempts,
    settlements_are_numbered_without_gaps,
    settled_operations_have_their_settlement,
    settlements_are_events,
    deliveries_are_those_listed,
    undelivered_has_a_next_time,
    no_send_follows_from_a_delivery,
)
