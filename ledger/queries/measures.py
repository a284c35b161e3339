"""What a number is, and over whose rows it is taken."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Count, Model, QuerySet

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Number:
    """One measure: `values` by the value of `label`."""

    name: str
    help: str
    label: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Scope:
    """Over these tenants; None: over all, and over the system itself."""

    tenant_ids: Collection[int] | None = None

    def of(self, model: type[M]) -> QuerySet[M]:
        rows: QuerySet[M] = QuerySet(model)
        return rows if self.tenant_ids is None else rows.filter(tenant_id__in=self.tenant_ids)


def counts(rows: QuerySet[Any], column: str) -> dict[str, float]:
    """How many rows have each value of the column."""
    return dict(rows.order_by().values_list(column).annotate(Count("pk")))
