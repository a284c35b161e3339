"""The board: memory that all processes of a lane share and none of them can take along when it dies.

What a fault did is written here before it does it. Per point: how often it was passed, and struck by each
kind. Per fault of the schedule at hand: how often its point was passed, and whether it has struck.
"""

from __future__ import annotations

import mmap
import struct
from collections import Counter

from tests.crash.suite.points import KINDS, POINTS

MOST_FAULTS = 16
_WORD = struct.Struct("<I")
_INDEX = {point: number for number, point in enumerate(POINTS)}
_KIND = {kind: number for number, kind in enumerate(KINDS)}
_PER_POINT = 1 + len(KINDS)


class Board:
    """Counters in anonymous shared memory; made before any process of the lane is forked."""

    def __init__(self) -> None:
        self._slots_at = len(POINTS) * _PER_POINT
        self._calm_at = self._slots_at + 2 * MOST_FAULTS
        self._memory = mmap.mmap(-1, (self._calm_at + 1) * _WORD.size)

    def passed(self, point: str) -> None:
        self._add(_INDEX[point] * _PER_POINT)

    def struck(self, point: str, kind: str) -> None:
        self._add(_INDEX[point] * _PER_POINT + 1 + _KIND[kind])

    def count(self, slot: int) -> int:
        """One more passage for a fault; which one it is, from 1."""
        return self._add(self._slots_at + 2 * slot)

    def take(self, slot: int) -> bool:
        """Is this fault still to strike? Afterwards it is not."""
        return not self._get(self._calm_at) and self._add(self._slots_at + 2 * slot + 1) == 1

    def disarm(self) -> None:
        """Nothing strikes any more, in whatever process, until the slots are cleared."""
        self._put(self._calm_at, 1)

    def clear_slots(self) -> None:
        """For the next schedule."""
        self._put(self._calm_at, 0)
        for word in range(self._slots_at, self._slots_at + 2 * MOST_FAULTS):
            self._put(word, 0)

    def has_struck(self, slot: int) -> bool:
        return self._get(self._slots_at + 2 * slot + 1) > 0

    def passages(self) -> Counter[str]:
        return Counter({point: self._get(at * _PER_POINT) for point, at in _INDEX.items()})

    def strikes(self) -> Counter[tuple[str, str]]:
        """How often each kind has struck at each point."""
        return Counter(
            {
                (point, kind): self._get(at * _PER_POINT + 1 + number)
                for point, at in _INDEX.items()
                for kind, number in _KIND.items()
                if self._get(at * _PER_POINT + 1 + number)
            }
        )

    def _add(self, word: int) -> int:
        value = self._get(word) + 1
        self._put(word, value)
        return value

    def _get(self, word: int) -> int:
        return int(_WORD.unpack_from(self._memory, word * _WORD.size)[0])

    def _put(self, word: int, value: int) -> None:
        _WORD.pack_into(self._memory, word * _WORD.size, value)
