"""Budgets: what a move of an attempt enters into its run's account, and whether anything is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ledger.rules.amounts import COUNTED, TOOL_CALLS, Amount, amount_text
from ledger.rules.states import State

Units = Mapping[str, Amount]

DEFAULT_COST: Units = {TOOL_CALLS: 1}

# An attempt that had leave keeps its reservation while it may still turn out to have happened.
RESERVED_IN = frozenset({State.DISPATCHED, State.UNKNOWN, State.MANUAL_REVIEW})


class EntryKind(StrEnum):
    """RESERVE holds, POST spends what was held, VOID gives it back, USAGE spends what was never held."""

    RESERVE = "RESERVE"
    POST = "POST"
    VOID = "VOID"
    USAGE = "USAGE"


class How(StrEnum):
    """On what ground an attempt moves, as far as its budget cares."""

    LEAVE = "leave"
    FINDING = "finding"  # a report, a look-up, or a timer that found nothing sent
    PERSON = "person"
    RELINK = "relink"


@dataclass(frozen=True)
class Entry:
    """One line of the account of one unit: what it adds to what is reserved and to what is spent."""

    kind: EntryKind
    unit: str
    reserved_change: Amount
    spent_change: Amount


@dataclass(frozen=True)
class HeldUnits:
    """What one attempt has in its run's account before it moves; `cost` is what its leave reserves."""

    had_leave: bool = False
    reserved: Units = field(default_factory=dict)
    posted: Units = field(default_factory=dict)
    cost: Units = field(default_factory=lambda: DEFAULT_COST)


@dataclass(frozen=True)
class Account:
    """One limit of a run; `limit` None counts without limiting."""

    unit: str
    limit: Amount | None
    reserved: Amount
    spent: Amount


@dataclass(frozen=True)
class Short:
    """One limit that a send would pass, or that is passed already; `wanted` None: not to be shown."""

    unit: str
    limit: Amount
    reserved: Amount
    spent: Amount
    wanted: Amount | None

    @property
    def words(self) -> str:
        """The same on the button, in the answer and in the event."""
        wanted = "[masked]" if self.wanted is None else amount_text(self.wanted)
        return (
            f"{self.unit}: limit {amount_text(self.limit)}, reserved {amount_text(self.reserved)}, "
            f"spent {amount_text(self.spent)}, wanted {wanted}"
        )


def entries_for(
    move_from: State, move_to: State, how: How, held: HeldUnits, *, actual: Units | None = None
) -> tuple[Entry, ...]:
    """The entries this move makes, at most one per unit, units by alphabet; empty where nothing changes.

    `actual` is what a confirmation reports as used; for a unit it does not name: what was reserved, else the
    cost. A correction posts the difference to what was posted before.
    """
    if move_from is move_to:
        return ()
    if move_to in RESERVED_IN:
        return _reserve(move_to, held)
    if move_to is State.OUTCOME_CONFIRMED:
        return _post(held, {**(held.reserved or held.cost), **(actual or {})})
    if _counts_as_spent(move_to, how):
        return _post(held, held.reserved) if held.reserved else ()
    return _entries(EntryKind.VOID, released=held.reserved, spent={})


def shortages(accounts: Iterable[Account], cost: Units, *, masked: bool = False) -> tuple[Short, ...]:
    """The limits of a run that one more send of this cost would pass, units by alphabet; none: it fits.

    An account over its limit already fits nothing. `masked`: money in the cost is not to be shown.
    """
    found = {account.unit: account for account in accounts}
    unnamed = limit_of_unnamed(found.values())
    found |= {unit: Account(unit, unnamed, 0, 0) for unit in cost if unit not in found}
    return tuple(
        Short(unit, account.limit, account.reserved, account.spent, _shown(unit, cost, masked=masked))
        for unit, account in sorted(found.items())
        if account.limit is not None and not _fits(account, cost.get(unit, 0))
    )


def limit_of_unnamed(accounts: Iterable[Account]) -> int | None:
    """The limit of a unit that the run has no account in: none where the run limits no money at all, else 0,
    so that no other currency and no other spelling slips past the limit that was meant."""
    limits_money = any(account.limit is not None and account.unit not in COUNTED for account in accounts)
    return 0 if limits_money else None


def overrun_units(accounts: Iterable[Account]) -> tuple[str, ...]:
    """The units that passed their limit, in the order given."""
    return tuple(account.unit for account in accounts if not _fits(account, 0))


def _shown(unit: str, cost: Units, *, masked: bool) -> Amount | None:
    return None if masked and unit in cost and unit not in COUNTED else cost.get(unit, 0)


def _fits(account: Account, more: Amount) -> bool:
    return account.limit is None or account.reserved + account.spent + more <= account.limit


def _counts_as_spent(move_to: State, how: How) -> bool:
    """A person's word that nothing happened is no proof, and a replaced attempt may have happened."""
    if move_to is State.SUPERSEDED:
        return how is not How.RELINK
    return move_to is State.FAILED and how is How.PERSON


def _reserve(move_to: State, held: HeldUnits) -> tuple[Entry, ...]:
    """An attempt that may have happened after all, though its reservation was given back, reserves again."""
    if held.reserved or not (held.had_leave or move_to is State.DISPATCHED):
        return ()
    return tuple(Entry(EntryKind.RESERVE, unit, held.cost[unit], 0) for unit in sorted(held.cost))


def _post(held: HeldUnits, due: Units) -> tuple[Entry, ...]:
    spent = {unit: due.get(unit, 0) - held.posted.get(unit, 0) for unit in {*due, *held.posted}}
    return _entries(EntryKind.POST, released=held.reserved, spent=spent)


def _entries(kind: EntryKind, *, released: Units, spent: Units) -> tuple[Entry, ...]:
    entries = (
        Entry(kind, unit, -released.get(unit, 0), spent.get(unit, 0)) for unit in sorted({*released, *spent})
    )
    return tuple(entry for entry in entries if entry.reserved_change or entry.spent_change)
