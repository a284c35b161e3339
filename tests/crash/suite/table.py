"""What a run shows: one table for people, the same as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.crash.suite.kinds import KINDS_OF_FAULT
from tests.crash.suite.plan import HAPPENINGS
from tests.crash.suite.points import KINDS, POINTS
from tests.crash.suite.provider_modes import LOOK_UPS, SENDS
from tests.crash.suite.schedule import Result

MAY_HAPPEN = (
    *(f"sends: {word}" for word in dict.fromkeys(SENDS)),
    *(f"look_ups: {word}" for word in dict.fromkeys(LOOK_UPS)),
    *(f"happenings: {what}" for what in HAPPENINGS),
)


@dataclass
class Run:
    """Everything a run has counted so far. `schedules_before`: so many of them were counted by earlier runs,
    into its tally, under the versions of the suite in `schedules_by_suite`; `red_before`: seeds that were red
    there under another version, and are run again."""

    seed: int
    lanes: int
    schedules: int = 0
    schedules_before: int = 0
    schedules_by_suite: Counter[str] = field(default_factory=Counter)
    red_before: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    zombies: Counter[str] = field(default_factory=Counter)
    strikes: Counter[tuple[str, str]] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    red_seeds: list[int] = field(default_factory=list)
    wall_s: float = 0.0
    cpu_s: float = 0.0
    all_points_wanted: bool = False

    def add(self, result: Result) -> None:
        self.schedules += 1
        self.counts.update(result.counts)
        self.zombies.update(result.zombies)
        self.met.update(result.met)
        self.blame(result.seed, result.faults)

    def blame(self, seed: int, faults: list[dict[str, str]]) -> None:
        """Where there are any, this schedule is red."""
        self.wrong.update(fault["kind"] for fault in faults)
        if faults:
            self.red_seeds.append(seed)

    @property
    def never_hit(self) -> list[str]:
        hit = {point for point, _ in self.strikes}
        return [point for point in POINTS if point not in hit]

    @property
    def never_met(self) -> list[str]:
        """What may happen, and never did."""
        return [words for words in MAY_HAPPEN if not self.met[words]]

    @property
    def red(self) -> bool:
        """Something was wrong; or, in a run long enough for it, a point was never hit, or something that may
        happen never did."""
        return bool(self.wrong) or (self.all_points_wanted and bool(self.never_hit or self.never_met))

    def as_data(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "lanes": self.lanes,
            "schedules": self.schedules,
            "of_earlier_runs": self.schedules_before,
            "of_earlier_runs_by_suite": dict(self.schedules_by_suite),
            "red_before_the_suite_changed": self.red_before,
            **self.counts,
            "strikes": sum(self.strikes.values()),
            "strikes_by_kind": {kind: self._by_kind(kind) for kind in KINDS},
            "strikes_by_point": _nested(self.strikes),
            "postgres_restarts": self.restarts,
            **{name: self.wrong[kind] for kind, name in KINDS_OF_FAULT.items()},
            "zombie_sends_by_agents": self.zombies["agent"],
            "zombie_sends_by_the_ledger": self.zombies["ledger"],
            "met": dict(sorted(self.met.items())),
            "never_hit": self.never_hit,
            "never_met": self.never_met,
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
        by_point, met = data.pop("strikes_by_point"), data.pop("met")
        lines = [f"{name.replace('_', ' '):<34} {_words(value)}" for name, value in data.items()]
        points = [f"  {point:<34} {_words(by_point.get(point, {}))}" for point in POINTS]
        came = [f"  {words:<34} {times}" for words, times in met.items()]
        return "\n".join(["strikes by point and kind", *points, "", "what came about", *came, "", *lines])


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
