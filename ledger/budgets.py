"""A run's budget: accounts locked, entries written, limits that nothing an agent posts can raise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from ledger.models import Attempt, BudgetAccount, BudgetEntry, BudgetUnit, Run
from ledger.rules.budgets import (
    DEFAULT_COST,
    Account,
    Entry,
    EntryKind,
    HeldUnits,
    How,
    entries_for,
    overrun_units,
)
from ledger.rules.budgets import budget_left as rule_budget_left
from ledger.rules.states import State
from ledger.transactions import remembered, require_transaction


def open_accounts(run: Run, limits: Mapping[str, int | None]) -> None:
    """One account per unit, with its limit for good."""
    require_transaction()
    BudgetAccount.objects.bulk_create(
        BudgetAccount(tenant_id=run.tenant_id, run=run, unit=unit, limit=limits.get(unit))
        for unit in BudgetUnit
    )


@remembered
def budget_left(run_id: int | None) -> bool:
    """Does one more tool call fit every limit of the run? Without a run nothing is limited."""
    if run_id is None:
        return True
    accounts = BudgetAccount.objects.filter(run_id=run_id)
    return rule_budget_left([_as_rule(account) for account in accounts], DEFAULT_COST)


def lock_accounts(run_id: int | None) -> None:
    """Hold the run's accounts until the transaction ends, so that what is left stays left."""
    require_transaction()
    if run_id is not None:
        _locked(run_id)


def enter_move(
    attempt: Attempt,
    *,
    run_id: int | None,
    move_from: State,
    move_to: State,
    how: How,
    now: datetime,
    actual: Mapping[str, int],
) -> tuple[str, ...]:
    """Write what this move means for the run's account. Returns the units that passed their limit by it."""
    require_transaction()
    if run_id is None:
        return ()
    entries = entries_for(move_from, move_to, how, _held_by(attempt), actual=actual)
    return _write(run_id, attempt, entries, now)


def enter_usage(
    run: Run, *, usage_id: str, amounts: Mapping[str, int], now: datetime
) -> tuple[str, ...] | None:
    """Count usage once per `usage_id`. Returns the units that passed their limit by it; None where it was
    counted before."""
    require_transaction()
    accounts = _locked(run.pk)
    if BudgetEntry.objects.filter(account__run=run, usage_id=usage_id).exists():
        return None
    over_before = _overrun(accounts)
    for unit, amount in sorted(amounts.items()):
        accounts[unit].spent += amount
        _book(accounts[unit], Entry(EntryKind.USAGE, unit, 0, amount), now=now, usage_id=usage_id)
    return tuple(unit for unit in _overrun(accounts) if unit not in over_before)


def counted_usage(run: Run, usage_id: str) -> dict[str, int]:
    """What was counted under this id, by unit."""
    entries = BudgetEntry.objects.filter(account__run=run, usage_id=usage_id).select_related("account")
    return {entry.account.unit: entry.spent_change for entry in entries}


def _held_by(attempt: Attempt) -> HeldUnits:
    reserved: dict[str, int] = defaultdict(int)
    posted: dict[str, int] = defaultdict(int)
    for entry in BudgetEntry.objects.filter(attempt=attempt).select_related("account"):
        reserved[entry.account.unit] += entry.reserved_change
        posted[entry.account.unit] += entry.spent_change
    return HeldUnits(
        had_leave=attempt.dispatched_at is not None,
        reserved={unit: amount for unit, amount in reserved.items() if amount},
        posted={unit: amount for unit, amount in posted.items() if amount},
    )


def _write(run_id: int, attempt: Attempt, entries: tuple[Entry, ...], now: datetime) -> tuple[str, ...]:
    accounts = _locked(run_id) if entries else {}
    over_before = _overrun(accounts)
    for entry in entries:
        account = accounts[entry.unit]
        account.reserved += entry.reserved_change
        account.spent += entry.spent_change
        _book(account, entry, now=now, attempt=attempt)
    return tuple(unit for unit in _overrun(accounts) if unit not in over_before)


def _book(
    account: BudgetAccount, entry: Entry, *, now: datetime, attempt: Attempt | None = None, usage_id: str = ""
) -> None:
    account.save(update_fields=["reserved", "spent"])
    BudgetEntry.objects.create(
        tenant_id=account.tenant_id,
        account=account,
        attempt=attempt,
        kind=entry.kind,
        reserved_change=entry.reserved_change,
        spent_change=entry.spent_change,
        usage_id=usage_id,
        at=now,
    )


def _locked(run_id: int) -> dict[str, BudgetAccount]:
    accounts = BudgetAccount.objects.select_for_update().filter(run_id=run_id).order_by("unit")
    return {account.unit: account for account in accounts}


def _overrun(accounts: Mapping[str, BudgetAccount]) -> tuple[str, ...]:
    return overrun_units(_as_rule(account) for account in accounts.values())


def _as_rule(account: BudgetAccount) -> Account:
    return Account(account.unit, account.limit, account.reserved, account.spent)
