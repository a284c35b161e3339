"""What the leave of an attempt took from its run's budget."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.models import Attempt, BudgetEntry
from ledger.rules.budgets import Units


def reserved_at_leave(attempt: Attempt) -> Units:
    """What the leave of an attempt reserved, by unit, whatever became of it; nothing before leave, or without
    a run."""
    entries = BudgetEntry.objects.filter(attempt=attempt, kind=BudgetEntry.Kind.RESERVE)
    return reserved_by(entries.select_related("account"))


def reserved_by(entries: Iterable[BudgetEntry]) -> Units:
    """What those of these entries reserved that a leave made, by unit."""
    leave = (entry for entry in entries if entry.kind == BudgetEntry.Kind.RESERVE)
    return {entry.account.unit: entry.reserved_change for entry in leave}
