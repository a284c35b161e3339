"""How much one tenant may have parked: beyond it a fact stays with its sender, who is told to come back."""

from __future__ import annotations

from dataclasses import dataclass

MOST_FACTS = 10_000
MOST_BYTES = 16 * 1024 * 1024
RETRY_AFTER_S = 60
NEARLY_FULL = 0.8


@dataclass(frozen=True)
class Parked:
    """What waits for one tenant; `size` in bytes. What was joined or dismissed is not counted."""

    facts: int
    size: int

    @property
    def fullness(self) -> float:
        """0 where nothing is parked, 1 and more where no further fact is taken."""
        return max(self.facts / MOST_FACTS, self.size / MOST_BYTES)

    @property
    def is_nearly_full(self) -> bool:
        return self.fullness >= NEARLY_FULL

    def has_room_for(self, size: int) -> bool:
        return self.facts < MOST_FACTS and self.size + size <= MOST_BYTES
