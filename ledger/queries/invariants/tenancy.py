"""Tenancy: nothing points across the wall, and rows about one attempt agree on its operation.

The references are read from the models, so a new one is checked from its first day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.apps import apps
from django.db import models
from guardian.models import BaseObjectPermission

from ledger.models.base import TenantRow
from ledger.queries.invariants.scope import (
    OUR_APPS,
    Broken,
    Check,
    Scope,
    options_of,
    scoped_name,
    tenant_models,
)


@dataclass(frozen=True)
class Reference:
    """One column of a tenant's row that points to a row of the same tenant."""

    table: str
    key: str
    column: str
    target: str
    target_key: str

    @property
    def wall(self) -> str:
        """The name of the foreign key over (tenant_id, column) that keeps it on its side."""
        return f"wall_{self.table.removeprefix('ledger_')}_{self.column}"


def references() -> list[Reference]:
    """Every reference from a tenant's row to a tenant's row."""
    return [
        _reference(model, field)
        for model in tenant_models()
        for field in options_of(model).concrete_fields
        if isinstance(field, models.ForeignKey) and issubclass(field.related_model, TenantRow)
    ]


def references_stay_within_the_tenant(scope: Scope) -> Iterator[Broken]:
    for reference in references():
        yield from scope.select(_crossing_sql(reference))


def what_has_no_tenant_is_there(scope: Scope) -> Iterator[Broken]:
    """What a tenant's row says of people, and of its tenant, is of one that exists."""
    for model in tenant_models():
        for field in _fields_out_of_the_wall(model):
            table, missing = options_of(model).db_table, _missing_sql(model, field)
            yield from scope.select(f"SELECT here.tenant_id, {missing.format(table=scoped_name(table))}")


def people_and_permissions_are_there(scope: Scope) -> Iterator[Broken]:
    """A permission, a membership: of a person, of an object, of a kind that exist."""
    for model in apps.get_models(include_auto_created=True):
        if options_of(model).app_label in OUR_APPS and not issubclass(model, TenantRow):
            for field in _foreign_keys(model):
                missing = _missing_sql(model, field).format(table=options_of(model).db_table)
                yield from scope.select_system(f"SELECT {missing}")


def permissions_are_of_what_they_are_on(scope: Scope) -> Iterator[Broken]:
    """A permission of a person on an object is one that its kind of object has; none lies elsewhere."""
    for model in apps.get_models():
        if issubclass(model, BaseObjectPermission):
            yield from scope.select_system(_permissions_sql(model))


def rows_agree_on_the_operation(scope: Scope) -> Iterator[Broken]:
    """A row that names an attempt and an operation names the attempt's own operation."""
    for model in tenant_models():
        columns = {field.column for field in options_of(model).concrete_fields}
        if {"attempt_id", "operation_id"} <= columns:
            table, key = options_of(model).db_table, _key_of(model)
            sql = _disagreeing_sql(table, key, scoped_name(table), "ledger_attempt")
            if scope.operations is not None:
                sql += " UNION " + _disagreeing_sql(table, key, table, "scoped_attempt")
            yield from scope.select(sql)


def _reference(model: type[TenantRow], field: models.ForeignKey[models.Model, models.Model]) -> Reference:
    target = field.related_model
    return Reference(
        table=options_of(model).db_table,
        key=_key_of(model),
        column=field.column,
        target=options_of(target).db_table,
        target_key=_key_of(target),
    )


def _key_of(model: type[models.Model]) -> str:
    return str(options_of(model).pk.column)


def _crossing_sql(reference: Reference) -> str:
    return f"""
        SELECT here.tenant_id, '{reference.table}:' || here."{reference.key}",
               '{reference.column} points to ' || CASE WHEN there.tenant_id IS NULL THEN 'nothing'
                                                       ELSE 'another tenant' END
        FROM {scoped_name(reference.table)} here
        LEFT JOIN "{reference.target}" there ON there."{reference.target_key}" = here."{reference.column}"
        WHERE here."{reference.column}" IS NOT NULL AND there.tenant_id IS DISTINCT FROM here.tenant_id
    """  # noqa: S608 - names of our own models


def _disagreeing_sql(table: str, key: str, rows: str, attempts: str) -> str:
    return f"""
        SELECT here.tenant_id, '{table}:' || here."{key}", 'names another operation than its attempt'
        FROM {rows} here JOIN {attempts} attempt ON attempt.id = here.attempt_id
        WHERE here.operation_id <> attempt.operation_id
    """  # noqa: S608 - names of our own models


def _foreign_keys(model: type[models.Model]) -> Iterator[models.ForeignKey[models.Model, models.Model]]:
    for field in options_of(model).concrete_fields:
        if isinstance(field, models.ForeignKey):
            yield field


def _fields_out_of_the_wall(
    model: type[TenantRow],
) -> Iterator[models.ForeignKey[models.Model, models.Model]]:
    return (field for field in _foreign_keys(model) if not issubclass(field.related_model, TenantRow))


def _missing_sql(model: type[models.Model], field: models.ForeignKey[models.Model, models.Model]) -> str:
    """Subject, detail and the rest of the query; `{table}` is to be filled in."""
    target, key = options_of(field.related_model).db_table, _key_of(field.related_model)
    return f"""
        '{options_of(model).db_table}:' || here."{_key_of(model)}", '{field.column} points to nothing'
        FROM {{table}} here LEFT JOIN "{target}" there ON there."{key}" = here."{field.column}"
        WHERE here."{field.column}" IS NOT NULL AND there."{key}" IS NULL
    """


def _permissions_sql(model: type[BaseObjectPermission]) -> str:
    table, named = options_of(model).db_table, {field.name for field in options_of(model).concrete_fields}
    if "content_object" not in named:
        return f"SELECT '{table}:' || id, 'gives a right on nothing in particular' FROM \"{table}\""  # noqa: S608
    kind = options_of(options_of(model).get_field("content_object").related_model)  # type: ignore[arg-type]
    return f"""
        SELECT '{table}:' || held.id,
               format('gives %%s.%%s on a {kind.label_lower}', kind.app_label, codename)
        FROM "{table}" held JOIN auth_permission permission ON permission.id = held.permission_id
        JOIN django_content_type kind ON kind.id = permission.content_type_id
        WHERE (kind.app_label, kind.model) <> ('{kind.app_label}', '{kind.model_name}')
    """  # noqa: S608 - names of our own models


CHECKS: tuple[Check, ...] = (
    references_stay_within_the_tenant,
    what_has_no_tenant_is_there,
    rows_agree_on_the_operation,
)
OF_THE_SYSTEM: tuple[Check, ...] = (people_and_permissions_are_there, permissions_are_of_what_they_are_on)
