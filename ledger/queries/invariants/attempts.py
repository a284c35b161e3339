"""Attempts: where each stands is what its history says, and each open question has somebody who owns it."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.rules.looked_up import LookedUpKind
from ledger.rules.states import ALWAYS_LIVE, FINAL, FIRST_STATES, MOVES, WAITS_FOR_AGENT, State
from ledger.rules.vocabulary import DecisionKind, EventKind

# Every change of state is an event with "to", and with "from" unless it is the first of its attempt.
MOVES_SQL = """
    moves AS (
        SELECT tenant_id, operation_id, attempt_id, sequence, kind,
               body::jsonb ->> 'from' AS source, body::jsonb ->> 'to' AS target,
               lag(body::jsonb ->> 'to') OVER (PARTITION BY tenant_id, attempt_id ORDER BY sequence) AS stood
        FROM scoped_event
        WHERE attempt_id IS NOT NULL AND body::jsonb ->> 'to' = ANY(%(states)s)
    )
"""
STATES = [str(state) for state in State]
SAID_IT_HAPPENED = [
    str(kind) for kind in (DecisionKind.CONFIRM_HAPPENED, DecisionKind.REJECT, DecisionKind.CONFLICT_HAPPENED)
]
SAID_IT_DID_NOT = [str(kind) for kind in (DecisionKind.CONFIRM_DID_NOT, DecisionKind.REJECT)]


def state_is_the_fold_of_its_events(scope: Scope) -> Iterable[Broken]:
    sql = f"""
        WITH {MOVES_SQL},
        last_move AS (
            SELECT DISTINCT ON (attempt_id) attempt_id, target FROM moves ORDER BY attempt_id, sequence DESC
        )
        SELECT attempt.tenant_id, attempt.id,
               format('is %%s, its history ends in %%s', state, coalesce(target, 'nothing'))
        FROM scoped_attempt attempt LEFT JOIN last_move ON last_move.attempt_id = attempt.id
        WHERE target IS DISTINCT FROM state
    """  # noqa: S608
    return scope.select(sql, states=STATES)


def every_move_is_legal(scope: Scope) -> Iterable[Broken]:
    sql = f"""
        WITH {MOVES_SQL}
        SELECT tenant_id, attempt_id,
               format('event %%s: %%s to %%s, standing in %%s', sequence, coalesce(source, 'nothing'), target,
                      coalesce(stood, 'nothing'))
        FROM moves
        WHERE source IS DISTINCT FROM stood
           OR CASE WHEN stood IS NULL THEN target <> ALL(%(first)s)
                   ELSE source || ' ' || target <> ALL(%(legal)s) END
    """  # noqa: S608
    legal = [f"{move.source} {move.target}" for move in MOVES]
    return scope.select(sql, states=STATES, first=[str(state) for state in FIRST_STATES], legal=legal)


def history_begins_with_the_intent(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT attempt.tenant_id, attempt.id, 'begins with ' || coalesce(first.kind, 'nothing')
        FROM scoped_attempt attempt LEFT JOIN LATERAL (
            SELECT kind FROM ledger_event
            WHERE operation_id = attempt.operation_id AND attempt_id = attempt.id ORDER BY sequence LIMIT 1
        ) first ON TRUE
        WHERE first.kind IS DISTINCT FROM %(intent)s
    """
    return scope.select(sql, intent=str(EventKind.INTENT))


def attempts_are_numbered_without_gaps(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT operation.tenant_id, operation.id,
               format('%%s attempts, numbered %%s to %%s', count(attempt.id), min(number), max(number))
        FROM scoped_operation operation
        LEFT JOIN ledger_attempt attempt ON attempt.operation_id = operation.id
        GROUP BY operation.tenant_id, operation.id
        HAVING count(attempt.id) = 0 OR min(number) <> 1 OR max(number) <> count(DISTINCT number)
            OR count(DISTINCT number) <> count(attempt.id)
    """)


def lineage_stays_within_the_operation(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT attempt.tenant_id, attempt.id,
               CASE WHEN before.id IS NULL THEN 'descends from nothing that exists'
                    WHEN before.operation_id <> attempt.operation_id THEN 'descends from another operation'
                    ELSE 'descends from a later attempt' END
        FROM scoped_attempt attempt LEFT JOIN ledger_attempt before ON before.id = attempt.descends_from_id
        WHERE attempt.descends_from_id IS NOT NULL
          AND (before.id IS NULL OR before.operation_id <> attempt.operation_id
               OR before.number >= attempt.number)
    """)


def one_attempt_is_live_and_one_confirmed(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT tenant_id, operation_id, format('%%s live and %%s confirmed attempts', live, confirmed)
        FROM (
            SELECT tenant_id, operation_id,
                   count(*) FILTER (WHERE state = ANY(%(live)s) OR (state = %(review)s
                                    AND dispatched_at IS NOT NULL)) AS live,
                   count(*) FILTER (WHERE state = %(confirmed)s) AS confirmed
            FROM scoped_attempt GROUP BY tenant_id, operation_id
        ) counted
        WHERE live > 1 OR confirmed > 1
    """
    return scope.select(
        sql,
        live=[str(state) for state in sorted(ALWAYS_LIVE)],
        review=str(State.MANUAL_REVIEW),
        confirmed=str(State.OUTCOME_CONFIRMED),
    )


def successors_open_in_their_leave(scope: Scope) -> Iterable[Broken]:
    """A successor of a sent attempt was opened when leave was given, or held at birth: it never waits."""
    sql = """
        SELECT attempt.tenant_id, attempt.id, 'waited although its predecessor had been sent'
        FROM scoped_attempt attempt
        JOIN ledger_attempt before ON before.id = attempt.descends_from_id
        JOIN ledger_event intent ON intent.attempt_id = attempt.id AND intent.kind = %(intent)s
        WHERE before.dispatched_at IS NOT NULL AND before.dispatched_at <= intent.at
          AND NOT EXISTS (
              SELECT 1 FROM ledger_event second
              WHERE second.attempt_id = attempt.id AND second.at = intent.at
                AND second.kind = ANY(%(at_once)s)
          )
    """
    at_once = [str(EventKind.DISPATCHED), str(EventKind.HELD)]
    return scope.select(sql, intent=str(EventKind.INTENT), at_once=at_once)


def held_is_recorded(scope: Scope) -> Iterable[Broken]:
    """Whoever was ever held needs an approval for ever: the row says so exactly where the history does."""
    sql = """
        SELECT attempt.tenant_id, attempt.id,
               CASE WHEN attempt.held_at IS NULL THEN 'was held in its history and not in its row'
                    ELSE 'was held in its row and not in its history' END
        FROM scoped_attempt attempt
        WHERE (attempt.held_at IS NULL AND EXISTS (
                  SELECT 1 FROM ledger_event WHERE attempt_id = attempt.id AND kind = %(held)s))
           OR (attempt.held_at IS NOT NULL AND NOT EXISTS (
                  SELECT 1 FROM ledger_event WHERE attempt_id = attempt.id AND at = attempt.held_at
                  AND body::jsonb ->> 'to' = %(review)s))
    """
    return scope.select(sql, held=str(EventKind.HELD), review=str(State.MANUAL_REVIEW))


def leave_is_recorded(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT attempt.tenant_id, attempt.id,
               CASE WHEN attempt.dispatched_at IS NULL THEN 'has leave in its history and not in its row'
                    ELSE 'has leave in its row and not in its history' END
        FROM scoped_attempt attempt
        WHERE (attempt.dispatched_at IS NOT NULL) <> EXISTS (
            SELECT 1 FROM ledger_event WHERE attempt_id = attempt.id AND kind = %(dispatched)s
        )
    """
    return scope.select(sql, dispatched=str(EventKind.DISPATCHED))


def arguments_hash_to_their_hash(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT tenant_id, id, 'its stored arguments have another hash'
        FROM scoped_attempt
        WHERE args_bytes IS NOT NULL AND args_hash <> 'v1:sha256:' || encode(sha256(args_bytes), 'hex')
    """)


def confirmed_has_evidence(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT tenant_id, id,
               format('confirmed by %%s without evidence', coalesce(nullif(confirmed_by, ''), 'nobody'))
        FROM scoped_attempt attempt
        WHERE state = %(confirmed)s AND NOT CASE confirmed_by
            WHEN 'agent' THEN result_ref <> '' OR provider_request_id <> ''
            WHEN 'lookup' THEN EXISTS (
                SELECT 1 FROM ledger_lookup WHERE attempt_id = attempt.id AND answer = 'found')
            WHEN 'operator' THEN EXISTS (
                SELECT 1 FROM ledger_decision WHERE attempt_id = attempt.id AND kind = ANY(%(happened)s))
            ELSE FALSE END
    """
    return scope.select(sql, confirmed=str(State.OUTCOME_CONFIRMED), happened=SAID_IT_HAPPENED)


def failed_has_a_ground(scope: Scope) -> Iterable[Broken]:
    """FAILED rests on proof or on a person, never on a timer, unless its agent only had not come for it."""
    sql = """
        SELECT attempt.tenant_id, attempt.id,
               format('failed by %%s without ground', coalesce(nullif(failed_by, ''), 'nobody'))
        FROM scoped_attempt attempt JOIN ledger_operation operation ON operation.id = attempt.operation_id
        WHERE state = %(failed)s AND NOT CASE failed_by
            WHEN 'agent' THEN operation.cancelled_at IS NOT NULL OR EXISTS (
                SELECT 1 FROM ledger_event WHERE attempt_id = attempt.id AND kind = %(reported)s)
            WHEN 'lookup' THEN EXISTS (
                SELECT 1 FROM ledger_lookup WHERE attempt_id = attempt.id
                AND (answer = ANY(%(readable)s) OR row = 'read'))
            WHEN 'operator' THEN EXISTS (
                SELECT 1 FROM ledger_decision WHERE attempt_id = attempt.id AND kind = ANY(%(did_not)s))
            WHEN 'not_started' THEN EXISTS (
                SELECT 1 FROM ledger_event ended WHERE ended.attempt_id = attempt.id
                AND ended.kind = %(ended)s AND ended.body::jsonb ->> 'from' = ANY(%(waiting)s))
            ELSE FALSE END
    """
    return scope.select(
        sql,
        failed=str(State.FAILED),
        reported=str(EventKind.OUTCOME_REPORTED),
        did_not=SAID_IT_DID_NOT,
        ended=str(EventKind.FAILED),
        waiting=sorted(WAITS_FOR_AGENT),
        readable=[str(LookedUpKind.FOUND), str(LookedUpKind.ABSENT)],
    )


def unknown_is_checked_again(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT tenant_id, id, 'is UNKNOWN and nobody will look again'
        FROM scoped_attempt WHERE state = %(unknown)s AND next_check_at IS NULL AND lookup_lease_until IS NULL
    """
    return scope.select(sql, unknown=str(State.UNKNOWN))


def open_questions_have_one_item(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT attempt.tenant_id, attempt.id,
               format('%%s for %%s, open items: %%s', attempt.state,
                      coalesce(nullif(attempt.reason, ''), 'no reason'),
                      coalesce(string_agg(item.reason, ', '), 'none'))
        FROM scoped_attempt attempt
        LEFT JOIN ledger_reviewitem item ON item.attempt_id = attempt.id AND item.closed_at IS NULL
        WHERE attempt.state = ANY(%(open)s)
        GROUP BY attempt.tenant_id, attempt.id, attempt.state, attempt.reason
        HAVING count(item.id) <> 1 OR attempt.reason = '' OR min(item.reason) <> attempt.reason
    """
    return scope.select(sql, open=[str(State.UNKNOWN), str(State.MANUAL_REVIEW)])


def answered_questions_have_no_item(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT item.tenant_id, item.id,
               format('is open (%%s) although its attempt is %%s', item.reason, attempt.state)
        FROM scoped_reviewitem item JOIN ledger_attempt attempt ON attempt.id = item.attempt_id
        WHERE item.closed_at IS NULL AND attempt.state <> ALL(%(open)s)
          AND item.reason <> 'conflicting_evidence'
    """
    return scope.select(sql, open=[str(State.UNKNOWN), str(State.MANUAL_REVIEW)])


def open_items_have_an_owner(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT item.tenant_id, item.id, 'is owned by a group that does not exist'
        FROM scoped_reviewitem item LEFT JOIN ledger_reviewgroup owners ON owners.id = item.owner_group_id
        WHERE item.closed_at IS NULL AND owners.id IS NULL
    """)


def leases_belong_to_their_states(scope: Scope) -> Iterable[Broken]:
    """A final state holds no lease; DISPATCHED holds its send lease."""
    sql = """
        SELECT tenant_id, id, format('%%s with send lease %%s, look-up lease %%s', state,
               coalesce(lease_until::text, 'none'), coalesce(lookup_lease_until::text, 'none'))
        FROM scoped_attempt
        WHERE (state = ANY(%(final)s) AND (lease_until IS NOT NULL OR lookup_lease_until IS NOT NULL))
           OR (state = %(dispatched)s AND (lease_until IS NULL OR dispatched_at IS NULL))
    """
    return scope.select(sql, final=[str(state) for state in sorted(FINAL)], dispatched=str(State.DISPATCHED))


CHECKS: tuple[Check, ...] = (
    state_is_the_fold_of_its_events,
    every_move_is_legal,
    history_begins_with_the_intent,
    attempts_are_numbered_without_gaps,
    lineage_stays_within_the_operation,
    one_attempt_is_live_and_one_confirmed,
    successors_open_in_their_leave,
    held_is_recorded,
    leave_is_recorded,
    arguments_hash_to_their_hash,
    confirmed_has_evidence,
    failed_has_a_ground,
    unknown_is_checked_again,
    open_questions_have_one_item,
    answered_questions_have_no_item,
    open_items_have_an_owner,
    leases_belong_to_their_states,
)
