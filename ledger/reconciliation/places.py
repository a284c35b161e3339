"""How many of one lane may be asked about at once: more as long as answers come soon."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.reconciliation.claims import Lane

PLACES = 32
"""Of one process, for all lanes."""
PLACES_OF_A_LANE = 16
SLOW_AFTER_S = 1.0


@dataclass
class Places:
    """One lane in one pass. It begins with one place, so that a provider that is not there is asked by one
    at a time, and one that answers late, or that may seldom be asked, takes few places from the others."""

    lane: Lane
    most: int = 1
    taken: int = 0

    @property
    def free(self) -> int:
        return max(0, self.most - self.taken)

    def answered(self, *, readable: bool, took_s: float) -> None:
        """Give one place back, and have one more where the answer was a readable one and came soon."""
        self.taken -= 1
        if not readable:
            self.most = 1
        elif took_s < SLOW_AFTER_S:
            self.most = min(self.most + 1, PLACES_OF_A_LANE)
