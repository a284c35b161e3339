"""A run's account: what every move enters, and that no walk of an attempt counts it twice or forgets it."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.amounts import Amount
from ledger.rules.budgets import (
    Account,
    Entry,
    EntryKind,
    HeldUnits,
    How,
    Units,
    entries_for,
    overrun_units,
    shortages,
)
from ledger.rules.states import FINAL, MOVES, State

S = State
RESERVE = Entry(EntryKind.RESERVE, "tool_calls", 1, 0)
POST = Entry(EntryKind.POST, "tool_calls", -1, 1)
VOID = Entry(EntryKind.VOID, "tool_calls", -1, 0)
NOTHING = HeldUnits()
GIVEN_BACK = HeldUnits(had_leave=True)
HOLDS = HeldUnits(had_leave=True, reserved={"tool_calls": 1})

ROWS: list[tuple[State, State, How, HeldUnits, tuple[Entry, ...]]] = [
    (S.INTENT_RECORDED, S.DISPATCHED, How.LEAVE, NOTHING, (RESERVE,)),
    (S.DISPATCHED, S.UNKNOWN, How.FINDING, HOLDS, ()),
    (S.UNKNOWN, S.MANUAL_REVIEW, How.FINDING, HOLDS, ()),
    (S.MANUAL_REVIEW, S.UNKNOWN, How.PERSON, HOLDS, ()),
    (S.DISPATCHED, S.OUTCOME_CONFIRMED, How.FINDING, HOLDS, (POST,)),
    (S.UNKNOWN, S.OUTCOME_CONFIRMED, How.FINDING, HOLDS, (POST,)),
    (S.MANUAL_REVIEW, S.OUTCOME_CONFIRMED, How.PERSON, HOLDS, (POST,)),
    (S.DISPATCHED, S.FAILED_RETRYABLE, How.FINDING, HOLDS, (VOID,)),
    (S.DISPATCHED, S.FAILED, How.FINDING, HOLDS, (VOID,)),
    (S.UNKNOWN, S.FAILED, How.FINDING, HOLDS, (VOID,)),
    (S.MANUAL_REVIEW, S.FAILED, How.PERSON, HOLDS, (POST,)),
    (S.UNKNOWN, S.SUPERSEDED, How.LEAVE, HOLDS, (POST,)),
    (S.MANUAL_REVIEW, S.SUPERSEDED, How.RELINK, HOLDS, (VOID,)),
    (S.FAILED_RETRYABLE, S.SUPERSEDED, How.LEAVE, GIVEN_BACK, ()),
    (
        S.FAILED_RETRYABLE,
        S.OUTCOME_CONFIRMED,
        How.FINDING,
        GIVEN_BACK,
        (Entry(EntryKind.POST, "tool_calls", 0, 1),),
    ),
    (S.FAILED_RETRYABLE, S.MANUAL_REVIEW, How.FINDING, GIVEN_BACK, (RESERVE,)),
    (S.FAILED_RETRYABLE, S.UNKNOWN, How.FINDING, GIVEN_BACK, (RESERVE,)),
    (S.INTENT_RECORDED, S.MANUAL_REVIEW, How.FINDING, NOTHING, ()),
    (S.INTENT_RECORDED, S.UNKNOWN, How.FINDING, NOTHING, ()),
    (S.INTENT_RECORDED, S.CANCELLED, How.PERSON, NOTHING, ()),
    (S.INTENT_RECORDED, S.FAILED, How.FINDING, NOTHING, ()),
    (S.MANUAL_REVIEW, S.INTENT_RECORDED, How.PERSON, NOTHING, ()),
    (S.MANUAL_REVIEW, S.FAILED, How.PERSON, NOTHING, ()),
]


@pytest.mark.parametrize(("move_from", "move_to", "how", "held", "entries"), ROWS)
def test_what_a_move_enters(
    move_from: State, move_to: State, how: How, held: HeldUnits, entries: tuple[Entry, ...]
) -> None:
    assert entries_for(move_from, move_to, how, held) == entries


def test_a_confirmation_posts_the_actual_and_gives_back_the_whole_reservation() -> None:
    held = HeldUnits(had_leave=True, reserved={"tool_calls": 1, "tokens": 100})
    actual = {"tokens": 130, "turns": 2}
    assert entries_for(S.DISPATCHED, S.OUTCOME_CONFIRMED, How.FINDING, held, actual=actual) == (
        Entry(EntryKind.POST, "tokens", -100, 130),
        Entry(EntryKind.POST, "tool_calls", -1, 1),
        Entry(EntryKind.POST, "turns", 0, 2),
    )


def test_a_correction_posts_the_difference() -> None:
    posted = HeldUnits(had_leave=True, posted={"tool_calls": 1, "tokens": 100})
    assert entries_for(S.FAILED, S.OUTCOME_CONFIRMED, How.PERSON, posted, actual={"tokens": 60}) == (
        Entry(EntryKind.POST, "tokens", 0, -40),
    )
    assert entries_for(S.FAILED, S.OUTCOME_CONFIRMED, How.PERSON, GIVEN_BACK) == (
        Entry(EntryKind.POST, "tool_calls", 0, 1),
    )


counts = st.dictionaries(st.sampled_from(["tool_calls", "tokens", "turns"]), st.integers(1, 50))
cents = st.decimals("0.01", "999999.99999999", places=8).map(lambda amount: amount.normalize())
money = st.dictionaries(st.sampled_from(["EUR", "USD", "CREDITS"]), cents)
units = st.builds(lambda counted, paid: {**counted, **paid}, counts, money)
actuals = units | units.map(lambda used: dict.fromkeys(used, Decimal(0)))


@given(st.data(), units, actuals)
def test_every_walk_of_an_attempt_keeps_the_account_whole(
    data: st.DataObject, cost: Units, actual: Units
) -> None:
    """Walks legal moves and adds up: reserved exactly while it may have happened, spent once at most."""
    state, had_leave = S.INTENT_RECORDED, False
    reserved: defaultdict[str, Amount] = defaultdict(int)
    spent: defaultdict[str, Amount] = defaultdict(int)
    for _ in range(8):
        targets = sorted(move.target for move in MOVES if move.source is state)
        if not targets:
            break
        target = data.draw(st.sampled_from(targets))
        how = data.draw(st.sampled_from(How))
        held = HeldUnits(had_leave, _some(reserved), _some(spent), cost)
        for entry in entries_for(state, target, how, held, actual=actual):
            reserved[entry.unit] += entry.reserved_change
            spent[entry.unit] += entry.spent_change
        had_leave |= target is S.DISPATCHED
        state = target
        holds = had_leave and state in {S.DISPATCHED, S.UNKNOWN, S.MANUAL_REVIEW}
        assert _some(reserved) == (cost if holds else {})
        assert min([*reserved.values(), *spent.values()], default=0) >= 0
        if state is S.OUTCOME_CONFIRMED:
            assert _some(spent) == _some({**cost, **actual})
        elif state in FINAL:
            assert _some(spent) in ({}, cost)


def _some(amounts: Units) -> Units:
    return {unit: amount for unit, amount in amounts.items() if amount}


def test_a_limit_is_never_passed_by_a_new_reservation() -> None:
    accounts = [Account("tool_calls", 3, 1, 1), Account("tokens", None, 0, 10**9)]
    assert not shortages(accounts, {"tool_calls": 1})
    assert shortages(accounts, {"tool_calls": 2})
    assert not shortages(accounts, {"turns": 5})
    assert not shortages([], {"tool_calls": 1})


def test_an_overrun_refuses_the_next_leave_whatever_it_costs() -> None:
    accounts = [Account("tool_calls", 9, 0, 0), Account("tokens", 100, 1, 100)]
    assert [short.unit for short in shortages(accounts, {"tool_calls": 1})] == ["tokens"]
    assert overrun_units(accounts) == ("tokens",)
    assert overrun_units([Account("tokens", 100, 0, 100)]) == ()
