"""Relinks: what an attempt was relinked to answers for it, and never leads back."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.rules.states import State


def relinked_attempts_are_superseded_for_the_same_tool(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT attempt.tenant_id, attempt.id, 'is relinked and not superseded, or to another tool'
        FROM scoped_attempt attempt
        WHERE attempt.relinked_to_id IS NOT NULL
          AND (attempt.state NOT IN (%(superseded)s, %(confirmed)s) OR NOT EXISTS (
              SELECT 1 FROM ledger_attempt target
              WHERE target.operation_id = attempt.relinked_to_id AND target.tool = attempt.tool))
    """
    return scope.select(sql, superseded=str(State.SUPERSEDED), confirmed=str(State.OUTCOME_CONFIRMED))


def relinks_never_lead_back(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        WITH RECURSIVE ahead (tenant_id, start, at_operation) AS (
            SELECT tenant_id, operation_id, relinked_to_id FROM scoped_attempt
            WHERE relinked_to_id IS NOT NULL
            UNION
            SELECT ahead.tenant_id, ahead.start, attempt.relinked_to_id
            FROM ahead JOIN ledger_attempt attempt ON attempt.operation_id = ahead.at_operation
            WHERE attempt.relinked_to_id IS NOT NULL
        )
        SELECT tenant_id, start, 'is relinked to what leads back to it' FROM ahead WHERE at_operation = start
    """)


CHECKS: tuple[Check, ...] = (relinked_attempts_are_superseded_for_the_same_tool, relinks_never_lead_back)
