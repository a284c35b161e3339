"""Tenancy: nothing points across the wall, and rows about one attempt agree on its operation.

The references are read from the models, so a new one is checked from its first day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.apps import apps
from django.db import models

from ledger.models.base import TenantRow
from ledger.queries.invariants.scope import Broken, Check, Scope, options_of


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


def tenant_models() -> list[type[TenantRow]]:
    """Every model behind the wall, in any app."""
    return [model for model in apps.get_models() if issubclass(model, TenantRow)]


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


def rows_agree_on_the_operation(scope: Scope) -> Iterator[Broken]:
    """A row that names an attempt and an operation names the attempt's own operation."""
    for model in tenant_models():
        columns = {field.column for field in options_of(model).concrete_fields}
        if {"attempt_id", "operation_id"} <= columns:
            yield from scope.select(_disagreeing_sql(options_of(model).db_table, _key_of(model)))


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
        FROM "{reference.table}" here
        LEFT JOIN "{reference.target}" there ON there."{reference.target_key}" = here."{reference.column}"
        WHERE here."{reference.column}" IS NOT NULL AND there.tenant_id IS DISTINCT FROM here.tenant_id
    """  # noqa: S608 - names of our own models


def _disagreeing_sql(table: str, key: str) -> str:
    return f"""
        SELECT here.tenant_id, '{table}:' || here."{key}", 'names another operation than its attempt'
        FROM "{table}" here JOIN ledger_attempt attempt ON attempt.id = here.attempt_id
        WHERE here.operation_id <> attempt.operation_id
    """  # noqa: S608 - names of our own models


CHECKS: tuple[Check, ...] = (references_stay_within_the_tenant, rows_agree_on_the_operation)
