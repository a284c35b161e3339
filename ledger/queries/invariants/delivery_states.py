"""Where a delivery stands: the fold of its events, and in agreement with its tries and acknowledgements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.rules.deliveries import NOTHING_SENT, Line, state_after

_KINDS = frozenset(line.value for line in Line)


def delivery_state_is_the_fold_of_its_events(scope: Scope) -> Iterator[Broken]:
    rows = scope.select("""
        SELECT delivery.tenant_id, delivery.id, concat_ws(' ', state, lines.text)
        FROM scoped_delivery delivery CROSS JOIN LATERAL (
            SELECT string_agg(substr(event.kind, 10), ' ' ORDER BY event.sequence) AS text
            FROM ledger_event event
            WHERE event.operation_id = delivery.operation_id AND event.kind LIKE 'delivery.%%'
              AND event.body::jsonb ->> 'delivery' = delivery.id
        ) lines
    """)
    for row in rows:
        state, *lines = row.detail.split(" ")
        said = state_after(map(Line, lines)) if _KINDS.issuperset(lines) else None
        if said != state:
            yield row._replace(detail=f"is {state}, its events say {said or ', '.join(lines)}")


def delivery_events_are_of_a_delivery(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT event.tenant_id, event.id, format('tells of %%s, which its operation does not have',
                                                 event.body::jsonb ->> 'delivery')
        FROM scoped_event event LEFT JOIN ledger_delivery delivery
          ON delivery.id = event.body::jsonb ->> 'delivery' AND delivery.operation_id = event.operation_id
        WHERE event.kind LIKE 'delivery.%%' AND delivery.id IS NULL
    """)


def tries_are_numbered_without_gaps(scope: Scope) -> Iterable[Broken]:
    """From 1 to the number that the delivery counts, no more than its lease was taken, of which the schedule
    leaves out no more than all."""
    return scope.select("""
        SELECT delivery.tenant_id, delivery.id,
               format('counts %%s tries, %%s of them before its schedule, in %%s leases, and has %%s, '
                      'the last numbered %%s', tries, tries_before, delivery.lease_epoch, count(made.id),
                      coalesce(max(made.number), 0))
        FROM scoped_delivery delivery LEFT JOIN ledger_deliverytry made ON made.delivery_id = delivery.id
        GROUP BY delivery.tenant_id, delivery.id, tries, tries_before, delivery.lease_epoch
        HAVING count(made.id) <> tries OR coalesce(max(made.number), 0) <> tries OR tries_before > tries
            OR coalesce(max(made.lease_epoch), 0) <> delivery.lease_epoch
    """)


def ended_tries_say_how(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT tenant_id, delivery_id, format('its try %%s ended and does not say how', number)
        FROM scoped_deliverytry
        WHERE (ended_at IS NULL) <> (ended_as IS NULL) OR (status IS NOT NULL AND ended_as IS NULL)
    """)


def acknowledged_means_acked(scope: Scope) -> Iterable[Broken]:
    """ACKED has an acknowledgement from its time on, and what was ever acknowledged is ACKED."""
    return scope.select("""
        SELECT delivery.tenant_id, delivery.id,
               format('is %%s since %%s, acknowledged at %%s', state,
                      coalesce(acked_at::text, 'never'), coalesce(first.at::text, 'no time'))
        FROM scoped_delivery delivery LEFT JOIN LATERAL (
            SELECT min(at) AS at FROM ledger_deliveryack WHERE delivery_id = delivery.id
        ) first ON TRUE
        WHERE (state = 'ACKED') <> (first.at IS NOT NULL) OR (state = 'ACKED') <> (acked_at IS NOT NULL)
           OR acked_at <> first.at
    """)


def acknowledged_by_a_2xx_means_received(scope: Scope) -> Iterable[Broken]:
    """No more acknowledgements without a consumer's own call than tries that ended in a receipt."""
    return scope.select("""
        SELECT ack.tenant_id, ack.delivery_id, format('%%s answers acknowledged it, %%s tries were received',
                                                      count(*), coalesce(max(received.tries), 0))
        FROM scoped_deliveryack ack LEFT JOIN (
            SELECT delivery_id, count(*) AS tries FROM ledger_deliverytry
            WHERE ended_as = 'received' GROUP BY delivery_id
        ) received ON received.delivery_id = ack.delivery_id
        WHERE ack.key_id IS NULL
        GROUP BY ack.tenant_id, ack.delivery_id HAVING count(*) > coalesce(max(received.tries), 0)
    """)


def sent_means_perhaps_received(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT tenant_id, id, 'is SENT, and none of its tries can have been received'
        FROM scoped_delivery delivery
        WHERE state = 'SENT' AND NOT EXISTS (
            SELECT FROM ledger_deliverytry made WHERE made.delivery_id = delivery.id
              AND (ended_as IS NULL OR ended_as <> ALL(%(nothing)s))
        )
    """
    return scope.select(sql, nothing=[str(end) for end in NOTHING_SENT])


def dead_letters_have_reason_and_owner(scope: Scope) -> Iterable[Broken]:
    """And nothing will send them until a person says so."""
    return scope.select("""
        SELECT tenant_id, id, format('is a dead letter: reason %%s, owner %%s, next try %%s',
                                     coalesce(nullif(dead_reason, ''), 'none'),
                                     coalesce(owner_group_id::text, 'nobody'),
                                     coalesce(next_at::text, 'never'))
        FROM scoped_delivery
        WHERE state = 'DEAD_LETTERED' AND (dead_reason = '' OR dead_at IS NULL OR owner_group_id IS NULL
                                           OR next_at IS NOT NULL OR held_at IS NOT NULL)
    """)


def what_is_held_is_not_due(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT tenant_id, id, format('is %%s, held and due at once', state) FROM scoped_delivery
        WHERE held_at IS NOT NULL AND next_at IS NOT NULL
    """
    return scope.select(sql)


def what_was_tried_has_its_body(scope: Scope) -> Iterable[Broken]:
    """Else the next try could say something else than the one before."""
    return scope.select("""
        SELECT tenant_id, id, format('was tried %%s times and keeps no body', tries) FROM scoped_delivery
        WHERE tries > 0 AND body IS NULL
    """)


CHECKS: tuple[Check, ...] = (
    delivery_state_is_the_fold_of_its_events,
    delivery_events_are_of_a_delivery,
    tries_are_numbered_without_gaps,
    ended_tries_say_how,
    acknowledged_means_acked,
    acknowledged_by_a_2xx_means_received,
    sent_means_perhaps_received,
    dead_letters_have_reason_and_owner,
    what_is_held_is_not_due,
    what_was_tried_has_its_body,
)
