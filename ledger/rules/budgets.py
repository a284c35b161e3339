"""Budgets: what a move of an attempt enters into its run's account, and whether anything is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from ledger.rules.states import State

Units = Mapping[str, Decimal]

TOOL_CALLS = "tool_calls"
DEFAULT_COST: Units = {TOOL_CALLS: Decimal(1)}

# An attempt that had leave keeps its reservation while it may still turn out to have happened.
RESERVED_IN = frozenset({State.DISPATCHED, State.UNKNOWN, State.MANUAL_REVIEW})


class EntryKind(StrEnum):
    """RESERVE adds to what is reserved; POST and VOID release a reservation, POST also adds to what is
    spent."""

    RESERVE = "RESERVE"
    POST = "POST"
    VOID = "VOID"


class How(StrEnum):
    """On what ground an attempt moves, as far as its budget cares."""

    LEAVE = "leave"
    FINDING = "finding"  # a report or a look-up
    PERSON = "person"
    RELINK = "relink"
    SUCCESSOR = "successor"
    TIMER = "timer"


@dataclass(frozen=True)
class Entry:
    """One line of an account: `amount` is reserved, posted or (VOID) nothing; `released` leaves the
    reservation."""

    kind: EntryKind
    unit: str
    amount: Decimal
    released: Decimal = Decimal(0)


@dataclass(frozen=True)
class Held:
    """What an attempt has in the account so far; `cost` is what its leave reserves."""

    had_leave: bool = False
    reserved: Units | None = None
    posted: Units | None = None
    cost: Units | None = None


@dataclass(frozen=True)
class Account:
    """One limit of a run; `limit` None counts without limiting."""

    unit: str
    limit: Decimal | None
    reserved: Decimal
    spent: Decimal


def entries_for(
    move_from: State, move_to: State, how: How, held: Held, *, actual: Units | None = None
) -> tuple[Entry, ...]:
    """The entries this move makes, one per unit, units in alphabetical order; empty where nothing changes.

    `actual` is what a confirmation reports as used (a unit it does not name: what was reserved, else the
    cost). A correction posts the difference to what was posted before.
    """
    if move_from == move_to:
        return ()
    if move_to in RESERVED_IN:
        return _reserve(move_to, held)
    if move_to is State.OUTCOME_CONFIRMED:
        return _post_actual(held, actual or {})
    if _keeps_what_was_reserved(move_to, how):
        return _post_reserved(held)
    return _void(held)


def budget_left(accounts: Iterable[Account], cost: Units) -> bool:
    """Does one more send of this cost fit every limit? An account already over its limit fits nothing."""
    return all(_fits(account, cost.get(account.unit, Decimal(0))) for account in accounts)


def overrun_units(accounts: Iterable[Account]) -> tuple[str, ...]:
    """The units whose actuals passed their limit, in the order given."""
    return tuple(account.unit for account in accounts if not _fits(account, Decimal(0)))


def _fits(account: Account, more: Decimal) -> bool:
    return account.limit is None or account.reserved + account.spent + more <= account.limit


def _keeps_what_was_reserved(move_to: State, how: How) -> bool:
    """A person's word that nothing happened is no proof, and a replaced attempt may have happened."""
    return (move_to is State.SUPERSEDED and how is not How.RELINK) or (
        move_to is State.FAILED and how is How.PERSON
    )


def _reserve(move_to: State, held: Held) -> tuple[Entry, ...]:
    has_leave = held.had_leave or move_to is State.DISPATCHED
    if held.reserved or not has_leave:
        return ()
    return _entries(EntryKind.RESERVE, _cost(held), {})


def _post_actual(held: Held, actual: Units) -> tuple[Entry, ...]:
    reserved, posted = held.reserved or {}, held.posted or {}
    due = {**(reserved or _cost(held)), **actual}
    difference = {unit: due.get(unit, Decimal(0)) - posted.get(unit, Decimal(0)) for unit in {*due, *posted}}
    return _entries(EntryKind.POST, difference, reserved)


def _post_reserved(held: Held) -> tuple[Entry, ...]:
    reserved = held.reserved or {}
    return _entries(EntryKind.POST, reserved, reserved)


def _void(held: Held) -> tuple[Entry, ...]:
    reserved = held.reserved or {}
    return _entries(EntryKind.VOID, dict.fromkeys(reserved, Decimal(0)), reserved)


def _cost(held: Held) -> Units:
    return DEFAULT_COST if held.cost is None else held.cost


def _entries(kind: EntryKind, amounts: Units, released: Units) -> tuple[Entry, ...]:
    entries = (
        Entry(kind, unit, amounts.get(unit, Decimal(0)), released.get(unit, Decimal(0)))
        for unit in sorted({*amounts, *released})
    )
    return tuple(entry for entry in entries if entry.amount or entry.released)
