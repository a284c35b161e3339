"""What is checked, how a check asks the database, and what it answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from django.apps import apps
from django.db import connection, models
from django.db.models import QuerySet
from django.db.models.options import Options

from ledger.models.base import TenantRow

OPERATIONS_AT_ONCE = 500
OUR_APPS = ("ledger", "review", "dashboard")

_Row = TypeVar("_Row", bound=models.Model)
_SCOPED = re.compile(r"\bscoped_(\w+)")


class Broken(NamedTuple):
    """One place where an invariant does not hold; no tenant where it is the whole system's."""

    tenant_id: int | None
    subject_id: str
    detail: str


@dataclass(frozen=True)
class Scope:
    """All tenants, or one; all operations (None), or these and what belongs to them."""

    tenant_id: int | None = None
    operations: tuple[str, ...] | None = None

    def parts(self) -> Iterator[Scope]:
        """The scope in parts small enough for one statement each; none where no operation is in it."""
        if self.operations is None:
            yield self
            return
        for start in range(0, len(self.operations), OPERATIONS_AT_ONCE):
            yield replace(self, operations=self.operations[start : start + OPERATIONS_AT_ONCE])

    def select(self, sql: str, **parameters: Any) -> Iterator[Broken]:
        """The rows of a query over (tenant_id, subject_id, detail) that are in scope, in a fixed order.

        `scoped_attempt` stands for the rows of `ledger_attempt` that are in scope, and so on for each table
        of a tenant: what a query looks for is scoped, what it only looks up is not.
        """
        whole = (
            f"{self._scoped_tables(sql)} SELECT tenant_id, subject_id, detail "  # noqa: S608
            f"FROM ({sql}) AS broken (tenant_id, subject_id, detail) "
            "WHERE %(scope)s::bigint IS NULL OR tenant_id = %(scope)s ORDER BY tenant_id, subject_id, detail"
        )
        yield from _rows(whole, {**parameters, "scope": self.tenant_id, "operations": self._listed})

    def select_system(self, sql: str, **parameters: Any) -> Iterator[Broken]:
        """The rows of a query over (subject_id, detail) about the database itself, whatever the scope."""
        whole = f"SELECT NULL, subject_id, detail FROM ({sql}) AS broken (subject_id, detail) ORDER BY 2, 3"  # noqa: S608
        yield from _rows(whole, parameters)

    def rows(self, every: QuerySet[_Row]) -> QuerySet[_Row]:
        """Those rows of a tenant's model that are in scope."""
        if self.tenant_id is not None:
            every = every.filter(tenant_id=self.tenant_id)
        if self.operations is not None:
            every = every.filter(**{f"{_path_to_operation(every.model)}__in": self.operations})
        return every

    @property
    def _listed(self) -> list[str]:
        return list(self.operations or ())

    def _scoped_tables(self, sql: str) -> str:
        names = sorted(set(_SCOPED.findall(sql)))
        return "WITH " + ", ".join(map(self._scoped, names)) if names else ""

    def _scoped(self, name: str) -> str:
        wanted = []
        if self.tenant_id is not None:
            wanted.append("tenant_id = %(scope)s")
        if self.operations is not None:
            wanted.append(_of_operations(f"ledger_{name}"))
        where = f" WHERE {' AND '.join(wanted)}" if wanted else ""
        return f"scoped_{name} AS NOT MATERIALIZED (SELECT * FROM ledger_{name}{where})"  # noqa: S608


Check = Callable[[Scope], Iterable[Broken]]
"""One invariant: its name says what holds, and it answers where that is not so."""


def options_of(model: type[models.Model] | models.Model) -> Options[Any]:
    """What a model says of itself; the documented name only looks private."""
    return model._meta  # noqa: SLF001


def tenant_models() -> list[type[TenantRow]]:
    """Every model behind the wall, in any app."""
    return [model for model in apps.get_models() if issubclass(model, TenantRow)]


def scoped_name(table: str) -> str:
    """How a query names the rows in scope of a table of ours."""
    return f"scoped_{table.removeprefix('ledger_')}" if table.startswith("ledger_") else table


def _of_operations(table: str) -> str:
    """The condition that a row belongs to one of the operations; one of no operation belongs to none."""
    columns = _columns_of(table)
    attempts = "SELECT id FROM ledger_attempt WHERE operation_id = ANY(%(operations)s)"
    deliveries = "SELECT id FROM ledger_delivery WHERE operation_id = ANY(%(operations)s)"
    runs = "SELECT run_id FROM ledger_operation WHERE id = ANY(%(operations)s)"
    if table == "ledger_operation":
        return "id = ANY(%(operations)s)"
    if table == "ledger_run":
        return f"id IN ({runs})"
    for column, condition in (
        ("operation_id", "= ANY(%(operations)s)"),
        ("attempt_id", f"IN ({attempts})"),
        ("delivery_id", f"IN ({deliveries})"),
        ("run_id", f"IN ({runs})"),
    ):
        if column in columns:
            return f"{column} {condition}"
    return "FALSE"


def _columns_of(table: str) -> set[str]:
    model = next(model for model in tenant_models() if options_of(model).db_table == table)
    return {str(field.column) for field in options_of(model).concrete_fields}


def _path_to_operation(model: type[models.Model]) -> str:
    """The look-up from a row to its operation's id."""
    table = options_of(model).db_table
    if table == "ledger_operation":
        return "pk"
    return "operation_id" if "operation_id" in _columns_of(table) else "attempt__operation_id"


def _rows(sql: str, parameters: Mapping[str, Any]) -> Iterator[Broken]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        for tenant_id, subject_id, detail in cursor.fetchall():
            yield Broken(tenant_id, str(subject_id), detail)
