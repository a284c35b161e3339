"""What a run shows: one table for people, the same as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.crash.suite.points import KINDS, POINTS
from tests.crash.suite.schedule import Result

KINDS_OF_FAULT = {
    "effects": "effects > 1",
    "lost": "lost acknowledgements",
    "stuck": "stuck",
    "twice": "applied twice by a consumer",
    "undelivered": "lost deliveries",
    "fsck": "fsck findings",
    "history": "histories that cannot be",
    "errors": "unplanned errors",
    "broken": "schedules that broke off",
}


@dataclass
class Run:
    """Everything a run has counted so far. `schedules_before`: so many of them were counted by earlier runs,
    into its tally; `red_before`: so many were red there under another version of the suite, and run again."""

    seed: int
    lanes: int
    schedules: int = 0
    schedules_before: int = 0
    red_before: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    zombies: Counter[str] = field(default_factory=Counter)
    strikes: Counter[tuple[str, str]] = field(default_factory=Counter)
    restarts: int = 0
    red_seeds: list[int] = field(default_factory=list)
    wall_s: float = 0.0
    cpu_s: float = 0.0
    all_points_wanted: bool = False

    def add(self, result: Result) -> None:
        self.schedules += 1
        self.counts.update(result.counts)
        self.zombies.update(result.zombies)
        self.wrong.update(fault["kind"] for fault in result.faults)
        if result.faults:
            self.red_seeds.append(result.seed)

    @property
    def never_hit(self) -> list[str]:
        hit = {point for point, _ in self.strikes}
        return [point for point in POINTS if point not in hit]

    @property
    def red(self) -> bool:
        """Something was wrong; or, in a run long enough for it, a point was never hit."""
        return bool(self.wrong) or (self.all_points_wanted and bool(self.never_hit))

    def as_data(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "lanes": self.lanes,
            "schedules": self.schedules,
            "of_earlier_runs": self.schedules_before,
            "red_before_the_suite_changed": self.red_before,
            **self.counts,
            "strikes": sum(self.strikes.values()),
            "strikes_by_kind": {kind: self._by_kind(kind) for kind in KINDS},
            "strikes_by_point": _nested(self.strikes),
            "postgres_restarts": self.restarts,
            **{name: self.wrong[kind] for kind, name in KINDS_OF_FAULT.items()},
            "zombie_sends_by_agents": self.zombies["agent"],
            "zombie_sends_by_the_ledger": self.zombies["ledger"],
            "never_hit": self.never_hit,
            "red_seeds": self.red_seeds,
            "wall_s": round(self.wall_s, 1),
            "wall_s_per_schedule": self._per_schedule(self.wall_s),
            "cpu_s_per_schedule": self._per_schedule(self.cpu_s),
        }

    def _per_schedule(self, seconds: float) -> float:
        return round(seconds / max(1, self.schedules - self.schedules_before), 3)

    def _by_kind(self, kind: str) -> int:
        return sum(count for (_, found), count in self.strikes.items() if found == kind)

    def as_text(self) -> str:
        data = self.as_data()
        by_point = data.pop("strikes_by_point")
        lines = [f"{name.replace('_', ' '):<28} {_words(value)}" for name, value in data.items()]
        points = [f"  {point:<34} {_words(by_point.get(point, {}))}" for point in POINTS]
        return "\n".join(["strikes by point and kind", *points, "", *lines])


def _nested(strikes: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (point, kind), count in strikes.items():
        found.setdefault(point, {})[kind] = count
    return found


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {count}" for name, count in value.items()) or "-"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(map(str, value)) or "-"
    return str(value)
