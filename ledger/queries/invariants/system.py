"""The database itself: what is to say no when our own code is wrong is there, valid and switched on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import pgtrigger
from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from ledger.queries.invariants.scope import OUR_APPS, Broken, Check, Scope, options_of
from ledger.queries.invariants.tenancy import references


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
        if options_of(model).app_label in OUR_APPS
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
    sql = """
        SELECT declared, CASE WHEN tgenabled IS NULL THEN 'is declared and missing in the database'
                              WHEN tgenabled NOT IN ('O', 'A') THEN 'is disabled'
                              ELSE 'is another than the one of this code' END
        FROM unnest(%(declared)s::text[], %(hashes)s::text[]) AS wanted (declared, hash)
        LEFT JOIN (
            SELECT relname || ' ' || tgname AS name, tgenabled, obj_description(pg_trigger.oid) AS hash
            FROM pg_trigger
            JOIN pg_class ON pg_class.oid = tgrelid AND relnamespace = current_schema()::regnamespace
        ) found ON found.name = declared
        WHERE tgenabled IS NULL OR tgenabled NOT IN ('O', 'A') OR found.hash IS DISTINCT FROM wanted.hash
    """
    declared = _declared_triggers()
    yield from scope.select_system(sql, declared=list(declared), hashes=list(declared.values()))
    yield from _disabled_constraint_triggers(scope)


@cache
def _declared_triggers() -> dict[str, str]:
    """Table and name of each trigger of our models, and the hash that its installation left as a comment."""
    return {
        f"{options_of(model).db_table} {trigger.get_pgid(model)}": trigger.compile(model).hash
        for model, trigger in pgtrigger.registered()
    }


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


def migrations_are_those_of_the_code(scope: Scope) -> Iterable[Broken]:
    """Every migration of our apps is applied, and none is that this code does not know."""
    sql = """
        SELECT coalesce(known, app || '.' || name),
               CASE WHEN name IS NULL THEN 'is not applied' ELSE 'is applied and unknown to this code' END
        FROM unnest(%(known)s::text[]) known
        FULL JOIN (SELECT app, name FROM django_migrations WHERE app = ANY(%(apps)s)) applied
          ON applied.app || '.' || applied.name = known
        WHERE known IS NULL OR name IS NULL
    """
    return scope.select_system(sql, known=list(_migrations()), apps=list(OUR_APPS))


def models_are_those_of_the_migrations(_scope: Scope) -> Iterator[Broken]:
    """Nothing in a model is without its migration."""
    for app, changed in _changes_without_migration():
        yield Broken(None, app, f"is in the code and in no migration: {changed}")


@cache
def _migrations() -> tuple[str, ...]:
    disk = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    return tuple(sorted(f"{app}.{name}" for app, name in disk if app in OUR_APPS))


@cache
def _changes_without_migration() -> tuple[tuple[str, str], ...]:
    """Worked out once: code does not change while a process runs."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    compared = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(apps))
    found = compared.changes(graph=loader.graph)
    return tuple(
        (app, operation.describe())
        for app, changed in sorted(found.items())
        if app in OUR_APPS
        for migration in changed
        for operation in migration.operations
    )


CHECKS: tuple[Check, ...] = (
    constraints_are_valid,
    constraints_are_there,
    triggers_are_there_and_enabled,
    wall_is_complete,
    migrations_are_those_of_the_code,
    models_are_those_of_the_migrations,
)
