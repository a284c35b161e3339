"""The two lanes of an operation, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.rules.next_step import NextStep
from ledger.rules.states import DeliveryState


@dataclass(frozen=True)
class LaneRow:
    """One delivery in the lane of its operation."""

    delivery_id: str
    destination: str
    settlement: int
    outcome: str
    state: DeliveryState
    tries: int
    error: str
    next_step: NextStep


@dataclass(frozen=True)
class Lanes:
    """Both machines of one operation in numbers, and the newest deliveries of it, at most 100."""

    execution_attempts: int = 0  # those that were given leave to send
    delivery_tries: int = 0
    deliveries: int = 0
    rows: tuple[LaneRow, ...] = ()
