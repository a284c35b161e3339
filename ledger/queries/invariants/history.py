"""History: every operation's events form one chain, whole and unedited up to the head its row remembers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.models import Event, Operation
from ledger.queries.history import chains
from ledger.queries.invariants.scope import Broken, Check, Scope


def histories_are_whole_and_unedited(scope: Scope) -> Iterator[Broken]:
    for chain in chains(scope.rows(Operation.objects.all()), scope.rows(Event.objects.all())):
        found = chain.find_break()
        if found is not None:
            yield Broken(chain.tenant_id, chain.operation_id, f"at event {found.sequence}: {found.problem}")


def every_operation_has_a_history(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT tenant_id, id, 'has no event' FROM scoped_operation operation
        WHERE NOT EXISTS (SELECT 1 FROM ledger_event WHERE operation_id = operation.id)
    """)


def heads_are_the_last_events(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT operation.tenant_id, operation.id,
               format('its head is event %%s, its last event is %%s', event_count, coalesce(last.sequence, 0))
        FROM scoped_operation operation LEFT JOIN LATERAL (
            SELECT sequence, hash FROM ledger_event
            WHERE operation_id = operation.id ORDER BY sequence DESC LIMIT 1
        ) last ON TRUE
        WHERE event_count <> coalesce(last.sequence, 0) OR head_hash <> last.hash
    """)


def events_belong_to_an_operation(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT event.tenant_id, event.id, 'belongs to no operation of its tenant'
        FROM scoped_event event LEFT JOIN ledger_operation operation
          ON operation.id = event.operation_id AND operation.tenant_id = event.tenant_id
        WHERE operation.id IS NULL
    """)


CHECKS: tuple[Check, ...] = (
    histories_are_whole_and_unedited,
    every_operation_has_a_history,
    heads_are_the_last_events,
    events_belong_to_an_operation,
)
