"""A run's budget: accounts locked, entries written, limits that nothing an agent posts can raise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from decimal import Context, Decimal

from ledger.models import Attempt, BudgetAccount, BudgetEntry, BudgetUnit, Run
from ledger.models.many import update_many
from ledger.queries.arguments import stored_args
from ledger.queries.reservations import reserved_at_leave, reserved_by
from ledger.rules.amounts import Amount
from ledger.rules.budgets import (
    DEFAULT_COST,
    Account,
    Entry,
    EntryKind,
    HeldUnits,
    How,
    Units,
    entries_for,
    limit_of_unnamed,
    overrun_units,
    shortages,
)
from ledger.rules.costs import CostUnreadable, cost_of, is_cost_masked
from ledger.rules.policy import Rule
from ledger.rules.states import State
from ledger.transactions import remembered, require_transaction

_EXACT = Context(prec=100)
"""No sum is ever rounded: an amount has at most 23 digits."""


class Books:
    """Reads and writes the accounts of one run after the other, each row at once."""

    def entries_of(self, attempt: Attempt) -> list[BudgetEntry]:
        return list(BudgetEntry.objects.filter(attempt=attempt).select_related("account"))

    def accounts_of(self, run_id: int) -> dict[str, BudgetAccount]:
        """By unit; locked until the transaction ends."""
        return _locked(run_id)

    def book(
        self,
        account: BudgetAccount,
        entry: Entry,
        *,
        now: datetime,
        attempt: Attempt | None = None,
        usage_id: str = "",
    ) -> None:
        account.reserved = _EXACT.add(account.reserved, Decimal(entry.reserved_change))
        account.spent = _EXACT.add(account.spent, Decimal(entry.spent_change))
        booked = BudgetEntry(
            tenant_id=account.tenant_id,
            account=account,
            attempt=attempt,
            kind=entry.kind,
            reserved_change=entry.reserved_change,
            spent_change=entry.spent_change,
            usage_id=usage_id,
            at=now,
        )
        self._keep(account, booked)

    def _keep(self, account: BudgetAccount, entry: BudgetEntry) -> None:
        account.save(update_fields=["reserved", "spent"])
        entry.save(force_insert=True)


class BooksOfMany(Books):
    """The same of many runs together: their accounts are locked at once, in the order of runs, and nothing is
    written before `write`."""

    def __init__(self, run_ids: Collection[int], attempt_ids: Collection[str]) -> None:
        require_transaction()
        self._accounts: dict[int, dict[str, BudgetAccount]] = {run_id: {} for run_id in run_ids}
        locked = BudgetAccount.objects.select_for_update().filter(run_id__in=run_ids)
        for account in locked.order_by("run_id", "unit"):
            self._accounts[account.run_id][account.unit] = account
        self._entries: dict[str, list[BudgetEntry]] = defaultdict(list)
        for entry in BudgetEntry.objects.filter(attempt__in=attempt_ids).select_related("account"):
            self._entries[str(entry.attempt_id)].append(entry)
        self._booked: list[BudgetEntry] = []

    def entries_of(self, attempt: Attempt) -> list[BudgetEntry]:
        return self._entries[attempt.pk]

    def accounts_of(self, run_id: int) -> dict[str, BudgetAccount]:
        return self._accounts[run_id]

    def write(self) -> None:
        accounts = {entry.account_id: entry.account for entry in self._booked}
        update_many(list(accounts.values()), ["reserved", "spent"])
        BudgetEntry.objects.bulk_create(self._booked)

    def _keep(self, account: BudgetAccount, entry: BudgetEntry) -> None:  # noqa: ARG002  (it is the entry's)
        self._booked.append(entry)


def open_accounts(run: Run, limits: Mapping[str, Amount | None]) -> None:
    """One account for each unit the ledger counts and each one the limits name, with its limit for good."""
    require_transaction()
    _open(run.tenant_id, run.pk, {unit: limits.get(unit) for unit in (*BudgetUnit.values, *limits)})


def why_short(run_id: int | None, attempt: Attempt, rule: Rule) -> tuple[str, ...]:
    """Why the run's limits leave no room for a send of this attempt under this rule, in words; empty where
    they do. Without a run nothing is limited; a cost that cannot be read fits nowhere."""
    if run_id is None:
        return ()
    try:
        cost = cost_of(rule, stored_args(attempt))
    except CostUnreadable as problem:
        return (f"its cost cannot be read: {problem}",)
    accounts = [_as_rule(account) for account in accounts_of(run_id)]
    return tuple(short.words for short in shortages(accounts, cost, masked=is_cost_masked(rule)))


def limit_of_unnamed_in(run: Run) -> int | None:
    """The limit of every unit of money that the run did not name."""
    return limit_of_unnamed(_as_rule(account) for account in accounts_of(run.pk))


@remembered
def accounts_of(run_id: int) -> list[BudgetAccount]:
    """The accounts of a run, units by alphabet."""
    return list(BudgetAccount.objects.filter(run_id=run_id).order_by("unit"))


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
    rule: Rule,
    actual: Units,
    books: Books,
) -> tuple[str, ...]:
    """Write what this move means for the run's account. `rule`: the one that a send would be under now.
    `actual`: what was reported as used; what is no part of the cost `enter_further_usage` counts.
    Returns the units that passed their limit by it.
    """
    require_transaction()
    if run_id is None:
        return ()
    held = _held_by(attempt, rule, books.entries_of(attempt))
    of_cost = {unit: used for unit, used in actual.items() if unit in held.cost}
    entries = entries_for(move_from, move_to, how, held, actual=of_cost)
    return _write(run_id, attempt, entries, now, books)


def enter_usage(run: Run, *, usage_id: str, amounts: Units, now: datetime) -> tuple[str, ...] | None:
    """Count usage once per `usage_id`. Returns the units that passed their limit by it; None where it was
    counted before."""
    require_transaction()
    accounts = _locked(run.pk)
    if BudgetEntry.objects.filter(account__run=run, usage_id=usage_id).exists():
        return None
    return _count(run, accounts, usage_id, amounts, now)


def enter_further_usage(run: Run, *, usage_id: str, amounts: Units, now: datetime) -> tuple[str, ...]:
    """Count usage once per `usage_id` and unit: those units that it named before are left as they are.
    Returns the units that passed their limit by it."""
    require_transaction()
    accounts, counted = _locked(run.pk), counted_usage(run, usage_id)
    further = {unit: amount for unit, amount in amounts.items() if unit not in counted}
    return _count(run, accounts, usage_id, further, now)


def _count(
    run: Run, accounts: dict[str, BudgetAccount], usage_id: str, amounts: Units, now: datetime
) -> tuple[str, ...]:
    amounts = {unit: amount for unit, amount in amounts.items() if amount}
    over_before = _overrun(accounts)
    _open_unnamed(run.tenant_id, run.pk, accounts, amounts)
    for unit, amount in sorted(amounts.items()):
        Books().book(accounts[unit], Entry(EntryKind.USAGE, unit, 0, amount), now=now, usage_id=usage_id)
    return tuple(unit for unit in _overrun(accounts) if unit not in over_before)


def counted_usage(run: Run, usage_id: str) -> dict[str, Amount]:
    """What was counted under this id, by unit."""
    entries = BudgetEntry.objects.filter(account__run=run, usage_id=usage_id).select_related("account")
    return {entry.account.unit: entry.spent_change for entry in entries}


def _held_by(attempt: Attempt, rule: Rule, entries: Collection[BudgetEntry]) -> HeldUnits:
    reserved: dict[str, Amount] = defaultdict(Decimal)
    posted: dict[str, Amount] = defaultdict(Decimal)
    for entry in entries:
        reserved[entry.account.unit] += entry.reserved_change
        posted[entry.account.unit] += entry.spent_change
    return HeldUnits(
        had_leave=attempt.dispatched_at is not None,
        reserved={unit: amount for unit, amount in reserved.items() if amount},
        posted={unit: amount for unit, amount in posted.items() if amount},
        cost=reserved_by(entries) or _cost(attempt, rule),
    )


def cost_of_attempt(attempt: Attempt, rule: Rule) -> Units:
    """What its leave reserved; before leave, what one under this rule would."""
    return reserved_at_leave(attempt) or _cost(attempt, rule)


def _cost(attempt: Attempt, rule: Rule) -> Units:
    """Leave asked authority, which lets no unreadable cost through; an attempt sent without leave, where it
    cannot be read, counts as one tool call."""
    try:
        return cost_of(rule, stored_args(attempt))
    except CostUnreadable:
        if attempt.state == State.DISPATCHED:
            raise
        return DEFAULT_COST


def _write(
    run_id: int, attempt: Attempt, entries: tuple[Entry, ...], now: datetime, books: Books
) -> tuple[str, ...]:
    accounts = books.accounts_of(run_id) if entries else {}
    over_before = _overrun(accounts)
    _open_unnamed(attempt.tenant_id, run_id, accounts, [entry.unit for entry in entries])
    for entry in entries:
        books.book(accounts[entry.unit], entry, now=now, attempt=attempt)
    return tuple(unit for unit in _overrun(accounts) if unit not in over_before)


def _open_unnamed(
    tenant_id: int, run_id: int, accounts: dict[str, BudgetAccount], units: Collection[str]
) -> None:
    """Open what the run did not name, on first use, under the lock of the accounts it has.

    Another may have opened it while this one waited for that lock: the next statement sees it. What is held
    already may be ahead of its row.
    """
    if all(unit in accounts for unit in units):
        return
    for unit, account in _locked(run_id).items():
        accounts.setdefault(unit, account)
    limit = limit_of_unnamed(_as_rule(account) for account in accounts.values())
    unnamed = {unit: limit for unit in units if unit not in accounts}
    accounts |= {account.unit: account for account in _open(tenant_id, run_id, unnamed)}


def _open(tenant_id: int, run_id: int, limits: Mapping[str, Amount | None]) -> list[BudgetAccount]:
    return BudgetAccount.objects.bulk_create(
        BudgetAccount(tenant_id=tenant_id, run_id=run_id, unit=unit, limit=limit)
        for unit, limit in sorted(limits.items())
    )


def _locked(run_id: int) -> dict[str, BudgetAccount]:
    accounts = BudgetAccount.objects.select_for_update().filter(run_id=run_id).order_by("unit")
    return {account.unit: account for account in accounts}


def _overrun(accounts: Mapping[str, BudgetAccount]) -> tuple[str, ...]:
    return overrun_units(_as_rule(account) for account in accounts.values())


def _as_rule(account: BudgetAccount) -> Account:
    return Account(account.unit, account.limit, account.reserved, account.spent)
