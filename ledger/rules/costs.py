"""What one send costs its run, by the rule's pointers into the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ledger.rules.amounts import NotReadable, read_amount, read_unit
from ledger.rules.budgets import DEFAULT_COST, Units
from ledger.rules.pointers import pointer
from ledger.rules.policy import Rule

UNNAMED_UNIT = "AMOUNT"
"""The unit of amounts whose rule points to none."""

_T = TypeVar("_T")


class CostUnreadable(ValueError):
    """The rule names an amount and the arguments do not have it: nothing can be reserved, nothing sent."""


def cost_of(rule: Rule, args: Mapping[str, object] | None) -> Units:
    """What leave reserves for one send: a tool call, and the amount the arguments name. Raises
    `CostUnreadable`, whose message names the pointer and never the value."""
    if rule.cost is None:
        return DEFAULT_COST
    if args is None:
        raise CostUnreadable("only the hash of the arguments is known")
    unit = UNNAMED_UNIT if rule.cost.unit is None else _read(read_unit, args, rule.cost.unit)
    amount = _read(read_amount, args, rule.cost.amount)
    return {**DEFAULT_COST, unit: amount} if amount else DEFAULT_COST


def cost_problem(rule: Rule, args: Mapping[str, object] | None) -> str:
    """Why the cost cannot be read; empty where it can."""
    try:
        cost_of(rule, args)
    except CostUnreadable as problem:
        return str(problem)
    return ""


def is_cost_masked(rule: Rule) -> bool:
    """Is the amount among what pages hide?"""
    return rule.cost is not None and any(
        f"{rule.cost.amount}/".startswith(f"{hidden}/") for hidden in rule.mask
    )


def _read(read: Callable[[object], _T], args: Mapping[str, object], path: str) -> _T:
    value = pointer(args, path)
    if value is None:
        raise CostUnreadable(f"{path} is missing")
    try:
        return read(value)
    except NotReadable as problem:
        raise CostUnreadable(f"{path} {problem}") from None
