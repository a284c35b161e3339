"""What every row of the ledger has in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Func

if TYPE_CHECKING:
    _TextColumn = models.CharField[str, str]
    _Column = models.Field[str | None, str | None]
else:
    _TextColumn = models.CharField
    _Column = models.Field


class TenantRow(models.Model):
    """A row behind the wall of one tenant.

    References to other tenant rows carry no constraint of Django's: the migration adds foreign keys over
    (tenant_id, id) instead, so that nothing can point across the wall.
    """

    tenant = models.ForeignKey("ledger.Tenant", models.PROTECT, related_name="+")

    class Meta:
        abstract = True


class IdField(_TextColumn):
    """A prefixed id, compared byte by byte."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            **{"max_length": 40, "db_collation": "C", "primary_key": True, "editable": False, **options}
        )


class TransactionIdField(_Column):
    """`xid8`: the transaction that wrote the row, filled in by the database itself."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"editable": False, "db_default": Func(function="pg_current_xact_id"), **options})

    def db_type(self, connection: object) -> str:  # noqa: ARG002 - Django names it
        return "xid8"
