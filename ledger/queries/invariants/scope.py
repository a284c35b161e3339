"""What is checked, how a check asks the database, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connection, models
from django.db.models.options import Options


class Broken(NamedTuple):
    """One place where an invariant does not hold; no tenant where it is the whole system's."""

    tenant_id: int | None
    subject_id: str
    detail: str


@dataclass(frozen=True)
class Scope:
    """All tenants, or one."""

    tenant_id: int | None = None

    def select(self, sql: str, **parameters: Any) -> Iterator[Broken]:
        """The rows of a query over (tenant_id, subject_id, detail) that are in scope, in a fixed order."""
        whole = (
            f"SELECT tenant_id, subject_id, detail FROM ({sql}) AS broken (tenant_id, subject_id, detail) "  # noqa: S608
            "WHERE %(scope)s::bigint IS NULL OR tenant_id = %(scope)s ORDER BY tenant_id, subject_id, detail"
        )
        yield from _rows(whole, {**parameters, "scope": self.tenant_id})

    def select_system(self, sql: str, **parameters: Any) -> Iterator[Broken]:
        """The rows of a query over (subject_id, detail) about the database itself, whatever the scope."""
        whole = f"SELECT NULL, subject_id, detail FROM ({sql}) AS broken (subject_id, detail) ORDER BY 2, 3"  # noqa: S608
        yield from _rows(whole, parameters)


Check = Callable[[Scope], Iterable[Broken]]
"""One invariant: its name says what holds, and it answers where that is not so."""


def options_of(model: type[models.Model] | models.Model) -> Options[Any]:
    """What a model says of itself; the documented name only looks private."""
    return model._meta  # noqa: SLF001


def _rows(sql: str, parameters: Mapping[str, Any]) -> Iterator[Broken]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        for tenant_id, subject_id, detail in cursor.fetchall():
            yield Broken(tenant_id, str(subject_id), detail)
