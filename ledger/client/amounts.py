"""Amounts by unit, as they are put into a body: money as exact text."""

from collections.abc import Mapping
from decimal import Decimal

Amounts = Mapping[str, int | str | Decimal]
"""Whole numbers of tool_calls, turns and tokens; of money an int, a Decimal, or text such as "12.30"."""

Limits = Mapping[str, int | str | Decimal | None]


def written(amounts: Limits) -> dict[str, int | str | None]:
    """The same for JSON, which knows no Decimal."""
    return {
        unit: format(amount, "f") if isinstance(amount, Decimal) else amount
        for unit, amount in amounts.items()
    }
