"""What every row of the ledger has in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    _TextColumn = models.CharField[str, str]
else:
    _TextColumn = models.CharField


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
