"""The database itself: what is to say no when our own code is wrong is there, valid and switched on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pgtrigger
from django.apps import apps

from ledger.queries.invariants.scope import Broken, Check, Scope, options_of
from ledger.queries.invariants.tenancy import references

_OURS = ["ledger", "review", "dashboard"]


def constraints_are_valid(scope: Scope) -> Iterable[Broken]:
    return scope.select_system("""
        SELECT conrelid::regclass || '.' || conname, 'is not validated'
        FROM pg_constraint
        WHERE NOT convalidated AND connamespace = current_schema()::regnamespace
    """)


def constraints_are_there(scope: Scope) -> Iterable[Broken]:
    """Every constraint and unique index that a model declares."""
    declared = [
        f"{options_of(model).db_table} {constraint.name}"
        for model in apps.get_models()
        if options_of(model).app_label in _OURS
        for constraint in options_of(model).constraints
    ]
    sql = """
        SELECT declared, 'is declared and missing in the database' FROM unnest(%(declared)s::text[]) declared
        WHERE NOT EXISTS (
            SELECT 1 FROM pg_constraint
            WHERE connamespace = current_schema()::regnamespace
              AND conrelid::regclass || ' ' || conname = declared
        ) AND NOT EXISTS (
            SELECT 1 FROM pg_indexes
            WHERE schemaname = current_schema() AND tablename || ' ' || indexname = declared
        )
    """
    return scope.select_system(sql, declared=declared)


def triggers_are_there_and_enabled(scope: Scope) -> Iterator[Broken]:
    declared = [
        f"{options_of(model).db_table} {trigger.get_pgid(model)}" for model, trigger in pgtrigger.registered()
    ]
    sql = """
        SELECT declared, CASE WHEN tgenabled IS NULL THEN 'is declared and missing in the database'
                              ELSE 'is disabled' END
        FROM unnest(%(declared)s::text[]) declared
        LEFT JOIN (
            SELECT relname || ' ' || tgname AS name, tgenabled FROM pg_trigger
            JOIN pg_class ON pg_class.oid = tgrelid AND relnamespace = current_schema()::regnamespace
        ) found ON found.name = declared
        WHERE tgenabled IS NULL OR tgenabled NOT IN ('O', 'A')
    """
    yield from scope.select_system(sql, declared=declared)
    yield from _disabled_constraint_triggers(scope)


def _disabled_constraint_triggers(scope: Scope) -> Iterable[Broken]:
    """The triggers behind foreign keys carry no name of ours."""
    return scope.select_system("""
        SELECT tgrelid::regclass || '.' || conname, 'is not enforced: its trigger is disabled'
        FROM pg_trigger JOIN pg_constraint ON pg_constraint.oid = tgconstraint
        JOIN pg_class ON pg_class.oid = tgrelid
        WHERE tgenabled NOT IN ('O', 'A') AND relnamespace = current_schema()::regnamespace AND tgisinternal
    """)


def wall_is_complete(scope: Scope) -> Iterable[Broken]:
    """Every reference between tenant rows has its foreign key over (tenant_id, column)."""
    sql = """
        SELECT wall, 'is missing: ' || tbl || '.' || col || ' can point across the wall'
        FROM unnest(%(walls)s::text[], %(tables)s::text[], %(columns)s::text[], %(targets)s::text[],
                    %(keys)s::text[]) AS needed (wall, tbl, col, target, key)
        WHERE NOT EXISTS (
            SELECT 1 FROM pg_constraint
            WHERE contype = 'f' AND conname = wall
              AND conrelid = to_regclass(tbl) AND confrelid = to_regclass(target)
              AND connamespace = current_schema()::regnamespace
              AND pg_get_constraintdef(oid) LIKE
                  format('FOREIGN KEY (tenant_id, %%s) REFERENCES %%s(tenant_id, %%s)%%%%', col, target, key)
        )
    """
    needed = references()
    return scope.select_system(
        sql,
        walls=[reference.wall for reference in needed],
        tables=[reference.table for reference in needed],
        columns=[reference.column for reference in needed],
        targets=[reference.target for reference in needed],
        keys=[reference.target_key for reference in needed],
    )


CHECKS: tuple[Check, ...] = (
    constraints_are_valid,
    constraints_are_there,
    triggers_are_there_and_enabled,
    wall_is_complete,
)
