"""Amounts and their units, as limits, arguments and reports write them: read exactly, or not at all."""

from __future__ import annotations

import re
from decimal import Decimal

Amount = int | Decimal

TOOL_CALLS = "tool_calls"
COUNTED = frozenset({TOOL_CALLS, "turns", "tokens"})
"""Units the ledger counts by itself, in whole numbers. Every other unit is one that arguments name."""

AMOUNT_PATTERN = r"(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,8})?"
UNIT_PATTERN = r"[A-Za-z][A-Za-z0-9_.-]{0,31}"
_AMOUNT = re.compile(AMOUNT_PATTERN, re.ASCII)
_UNIT = re.compile(UNIT_PATTERN, re.ASCII)


class NotReadable(ValueError):
    """What stands there is no amount, or no unit; the message goes on after its name."""


def read_amount(value: object) -> Decimal:
    """The exact amount: a JSON number, or the same digits as text. Raises `NotReadable`.

    The strict reader lets only numbers in that a double keeps, so its shortest text is what was written.
    """
    text = _digits(value)
    if text is None or not _AMOUNT.fullmatch(text):
        raise NotReadable("is no amount: plain digits, at most 15 before the point and 8 after it, no sign")
    return Decimal(text)


def read_unit(value: object) -> str:
    """The unit in the one spelling it is kept under, upper case. Raises `NotReadable`."""
    if not isinstance(value, str) or not _UNIT.fullmatch(value):
        raise NotReadable("is no unit: a letter, then at most 31 letters, digits, or any of _ . -")
    if value.lower() in COUNTED:
        raise NotReadable(f"is no unit of money: {value.lower()} are counted by the ledger itself")
    return value.upper()


def amount_text(amount: Amount) -> str:
    """The amount in plain digits, with the decimal places it has."""
    return format(amount, "f") if isinstance(amount, Decimal) and amount else str(int(amount))


def _digits(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    if isinstance(value, str):
        return value
    return amount_text(Decimal(repr(value)) if isinstance(value, float) else value)
