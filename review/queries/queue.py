"""The queue of one person: what waits in their tenants, most urgent first."""

from __future__ import annotations

from ledger.models import User
from review.queries.values import QueueFilters, QueuePage


def queue(user: User, filters: QueueFilters) -> QueuePage:
    """One page of 50. Raises `BadFilter` for a cursor that is not ours."""
    raise NotImplementedError
