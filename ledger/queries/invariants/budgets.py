"""Budgets: accounts are the sums of their entries, and exactly what may still happen is reserved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from ledger.models import Attempt, PolicySnapshot
from ledger.queries.arguments import stored_args
from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.queries.reservations import reserved_at_leave
from ledger.rules.amounts import TOOL_CALLS, amount_text
from ledger.rules.budgets import RESERVED_IN, EntryKind, Units
from ledger.rules.costs import CostUnreadable, cost_of
from ledger.rules.policy import Rule, parse_policy
from ledger.rules.states import State
from ledger.rules.vocabulary import EventKind, FailedBy

CHUNK = 1_000


def accounts_are_the_sums_of_their_entries(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT account.tenant_id, account.id,
               format('%%s: reserved %%s and spent %%s, entries sum to %%s and %%s', unit, reserved, spent,
                      coalesce(sum(reserved_change), 0), coalesce(sum(spent_change), 0))
        FROM scoped_budgetaccount account LEFT JOIN ledger_budgetentry entry ON entry.account_id = account.id
        GROUP BY account.tenant_id, account.id, unit, reserved, spent
        HAVING reserved <> coalesce(sum(reserved_change), 0) OR spent <> coalesce(sum(spent_change), 0)
    """)


def overruns_are_told(scope: Scope) -> Iterable[Broken]:
    """An account passes its limit by actuals only: by usage, or by a move whose event says so."""
    sql = """
        SELECT account.tenant_id, account.id,
               format('%%s: %%s of %%s and no event tells of it', unit, reserved + spent, "limit")
        FROM scoped_budgetaccount account
        WHERE reserved + spent > "limit"
          AND NOT EXISTS (
              SELECT 1 FROM ledger_event event
              JOIN ledger_operation operation ON operation.id = event.operation_id
              WHERE operation.run_id = account.run_id AND event.kind = %(overrun)s
                AND event.body::jsonb -> 'units' @> to_jsonb(account.unit))
          AND NOT EXISTS (
              SELECT 1 FROM ledger_budgetentry entry
              WHERE entry.account_id = account.id AND entry.kind = 'USAGE')
    """
    return scope.select(sql, overrun=str(EventKind.OVERRUN))


def what_may_still_happen_is_reserved(scope: Scope) -> Iterable[Broken]:
    """Of every unit exactly what leave reserved, while the attempt may have happened, and nothing else; of
    tool calls leave always reserves one."""
    sql = """
        SELECT tenant_id, id, format('is %%s and has %%s of %%s %%s reserved', state, reserved, due, unit)
        FROM (
            SELECT attempt.tenant_id, attempt.id, attempt.state, account.unit,
                   coalesce(sum(entry.reserved_change), 0) AS reserved,
                   CASE WHEN attempt.dispatched_at IS NULL OR attempt.state <> ALL(%(reserved_in)s) THEN 0
                        ELSE coalesce(max(entry.reserved_change) FILTER (WHERE entry.kind = 'RESERVE'),
                                      (account.unit = %(tool_calls)s)::int) END AS due
            FROM scoped_attempt attempt
            JOIN ledger_operation operation ON operation.id = attempt.operation_id
            JOIN ledger_budgetaccount account ON account.run_id = operation.run_id
            LEFT JOIN ledger_budgetentry entry
              ON entry.account_id = account.id AND entry.attempt_id = attempt.id
            GROUP BY attempt.tenant_id, attempt.id, attempt.state, attempt.dispatched_at, account.unit
        ) AS held
        WHERE reserved <> due
    """
    return scope.select(sql, tool_calls=TOOL_CALLS, reserved_in=[str(state) for state in sorted(RESERVED_IN)])


def reservations_are_what_the_arguments_cost(scope: Scope) -> Iterator[Broken]:
    """Leave reserves the amount that the rule points to, of every attempt that may still happen.

    Asked of those whose rule at leave is known to be their own: what was held may be sent under a later one.
    """
    policies = {snapshot.pk: parse_policy(snapshot.document) for snapshot in _snapshots_with_cost()}
    for attempt in _may_still_cost(scope, policies).iterator(chunk_size=CHUNK):
        rule = policies[attempt.policy_id].rule_for(attempt.tool)
        due, reserved = _due(attempt, rule), reserved_at_leave(attempt)
        if reserved != due:
            detail = f"leave reserved {_listed(reserved)}, its arguments cost {_listed(due)}"
            yield Broken(attempt.tenant_id, attempt.pk, detail)


def _snapshots_with_cost() -> QuerySet[PolicySnapshot]:
    """Those in whose text the word stands; most tenants have none."""
    return PolicySnapshot.objects.annotate(text=Cast("document", TextField())).filter(text__contains='"cost"')


def _may_still_cost(scope: Scope, policies: Iterable[int]) -> QuerySet[Attempt]:
    found = Attempt.objects.filter(
        operation__run__isnull=False,
        dispatched_at__isnull=False,
        held_at__isnull=True,
        state__in=sorted(RESERVED_IN),
        policy__in=list(policies),
    )
    return scope.rows(found).order_by("pk")


def _due(attempt: Attempt, rule: Rule | None) -> Units:
    try:
        return {} if rule is None else cost_of(rule, stored_args(attempt))
    except CostUnreadable:
        return {}


def _listed(amounts: Units) -> str:
    return ", ".join(f"{amount_text(amount)} {unit}" for unit, amount in sorted(amounts.items())) or "nothing"


def reservations_end_whole(scope: Scope) -> Iterable[Broken]:
    """An attempt never gives back more than was reserved for it, nor spends less than nothing."""
    return scope.select("""
        SELECT account.tenant_id, entry.attempt_id,
               format('%%s: reserved %%s, spent %%s', account.unit, sum(reserved_change), sum(spent_change))
        FROM scoped_budgetentry entry JOIN ledger_budgetaccount account ON account.id = entry.account_id
        WHERE entry.attempt_id IS NOT NULL
        GROUP BY account.tenant_id, entry.attempt_id, account.unit
        HAVING sum(reserved_change) < 0 OR sum(spent_change) < 0
    """)


def entries_stay_in_their_run(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT entry.tenant_id, entry.attempt_id, 'is charged to the account of another run'
        FROM scoped_budgetentry entry
        JOIN ledger_budgetaccount account ON account.id = entry.account_id
        JOIN ledger_attempt attempt ON attempt.id = entry.attempt_id
        JOIN ledger_operation operation ON operation.id = attempt.operation_id
        WHERE operation.run_id IS DISTINCT FROM account.run_id
    """)


def what_happened_is_posted(scope: Scope) -> Iterable[Broken]:
    """A confirmation posts what was used (nothing, if so reported), a later correction the difference."""
    sql = """
        SELECT attempt.tenant_id, attempt.id, 'happened and was never posted'
        FROM scoped_attempt attempt JOIN ledger_operation operation ON operation.id = attempt.operation_id
        WHERE attempt.state = %(confirmed)s AND operation.run_id IS NOT NULL
          AND NOT EXISTS (
              SELECT 1 FROM ledger_budgetentry entry
              WHERE entry.attempt_id = attempt.id AND entry.kind = %(post)s)
          AND NOT EXISTS (
              SELECT 1 FROM ledger_event event WHERE event.attempt_id = attempt.id AND event.kind = %(report)s
              AND event.body::jsonb -> 'usage' ->> %(tool_calls)s = '0')
    """
    said = {
        "confirmed": State.OUTCOME_CONFIRMED,
        "post": EntryKind.POST,
        "report": EventKind.OUTCOME_REPORTED,
    }
    return scope.select(sql, **{name: str(word) for name, word in said.items()}, tool_calls=TOOL_CALLS)


def what_did_not_happen_costs_nothing(scope: Scope) -> Iterable[Broken]:
    """Proof of no effect gives back what was reserved; only a person's word is no such proof."""
    sql = """
        SELECT attempt.tenant_id, attempt.id, format('did not happen and %%s are spent', sum(spent_change))
        FROM scoped_attempt attempt JOIN ledger_budgetentry entry ON entry.attempt_id = attempt.id
        WHERE attempt.state = %(retryable)s OR (attempt.state = %(failed)s AND failed_by <> %(person)s)
        GROUP BY attempt.tenant_id, attempt.id
        HAVING sum(spent_change) <> 0
    """
    retryable, failed = str(State.FAILED_RETRYABLE), str(State.FAILED)
    return scope.select(sql, retryable=retryable, failed=failed, person=str(FailedBy.OPERATOR))


CHECKS: tuple[Check, ...] = (
    accounts_are_the_sums_of_their_entries,
    overruns_are_told,
    what_may_still_happen_is_reserved,
    reservations_are_what_the_arguments_cost,
    reservations_end_whole,
    entries_stay_in_their_run,
    what_happened_is_posted,
    what_did_not_happen_costs_nothing,
)
