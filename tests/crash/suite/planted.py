"""The suite itself tested: every plant until it is seen, and the product without any, which is green."""

from __future__ import annotations

import re
import select
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.suite import database
from tests.crash.suite.board import Board
from tests.crash.suite.children import Child, Line, freeze
from tests.crash.suite.conductor import Wish, end_lane, run_lane
from tests.crash.suite.kinds import KINDS_OF_FAULT
from tests.crash.suite.plan import Plan, plan_from
from tests.crash.suite.plants import PLANTS
from tests.crash.suite.schedule import Result

CONTROL = "none"
WORDS_AT_MOST = 120
IDS = re.compile(r"\b(op|att|thing|apr|dlv)_\w+")


@dataclass
class Trial:
    """One plant in a lane of its own. `tried`: schedules so far; `found`: all that was wrong in them."""

    name: str
    plans: Iterator[Plan]
    tried: int = 0
    found: list[dict[str, str]] = field(default_factory=list)
    wall_s: float = 0.0

    @property
    def is_seen(self) -> bool:
        """Something is wrong as this very bug makes it; of none, something."""
        bug = PLANTS.get(self.name)
        return any(bug is None or _words(fault).startswith(bug.shows) for fault in self.found)

    @property
    def is_right(self) -> bool:
        """The bug was seen; and where there is none, none was."""
        return self.is_seen != (self.name == CONTROL)

    @property
    def as_data(self) -> dict[str, Any]:
        bug = PLANTS.get(self.name)
        return {
            "bug": self.name,
            "missing": bug.missing if bug else "nothing: the product as it is",
            "guards_removed": bug.guards if bug else "",
            "schedules": self.tried,
            "red": bool(self.found),
            "seen": self.is_seen,
            "turned_red": sorted({_words(fault) for fault in self.found}),
            "wall_s": round(self.wall_s, 1),
        }


def _words(fault: dict[str, str]) -> str:
    """The kind; of fsck the invariant too, of other things how they begin."""
    kind, detail = KINDS_OF_FAULT[fault["kind"]], IDS.sub("…", fault["detail"])
    if fault["kind"] == "fsck":
        return f"{kind}: {detail.split()[0]}"
    return f"{kind}: {' '.join(detail.split(': …')[0].split())[:WORDS_AT_MOST]}"


@dataclass
class Findings:
    """The whole table."""

    trials: list[Trial]
    wall_s: float = 0.0

    @property
    def red(self) -> bool:
        """A bug was not seen, or one was where there is none."""
        return not all(trial.is_right for trial in self.trials)

    def as_data(self) -> dict[str, Any]:
        return {
            "as_it_should_be": not self.red,
            "bugs": [trial.as_data for trial in self.trials],
            "wall_s": round(self.wall_s, 1),
        }

    def as_text(self) -> str:
        rows = [_row(trial) for trial in self.trials]
        seen = sum(trial.is_seen for trial in self.trials if trial.name != CONTROL)
        return "\n".join([*rows, f"{seen} of {len(self.trials) - 1} bugs seen in {self.wall_s:.0f} s"])


def _row(trial: Trial) -> str:
    data = trial.as_data
    colour = "green" if not trial.found else "red  " if trial.is_seen else "other"
    first = f"{colour} {data['bug']:<30} {data['schedules']:>3}  {data['missing']}"
    removed = [f"removed too: {data['guards_removed']}"] if data["guards_removed"] else []
    return "\n".join([first, *(f"{'':12}{words}" for words in [*removed, *data["turned_red"]])])


def control(most: int) -> Iterator[Plan]:
    """Plans of every shape: what turns a plant red leaves the product green."""
    shapes = list(dict.fromkeys(bug.shape for bug in PLANTS.values()))
    rounds = max(1, -(-most // len(shapes)))
    yield from (shape(n) for n in range(1, rounds + 1) for shape in shapes)


def try_plants(wish: Wish) -> Findings:
    """Try every plant, or the one that is wished for, and none; at most `wish.schedules` plans of each, on
    `wish.lanes` lanes at once."""
    names = (CONTROL, wish.planted) if wish.planted else (CONTROL, *PLANTS)
    trials = [Trial(name, _plans(name, wish.schedules)) for name in names]
    started_at = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lc-", ignore_cleanup_errors=True) as directory:
        _Field(wish, Path(directory)).run(trials)
    return Findings(trials, time.monotonic() - started_at)


def _plans(name: str, most: int) -> Iterator[Plan]:
    if name == CONTROL:
        return control(most)
    return (PLANTS[name].shape(n) for n in range(1, most + 1))


class _Field:
    """A few lanes at once, each with one plant, from its fork to its end."""

    def __init__(self, wish: Wish, directory: Path) -> None:
        self.wish, self.directory = wish, directory
        self.template = database.make_template(directory / "t")
        self.begun = 0
        freeze()

    def run(self, trials: list[Trial]) -> None:
        waiting, busy = iter(trials), list[tuple[Child, Trial, float]]()
        try:
            while True:
                while len(busy) < self.wish.lanes and (trial := next(waiting, None)) is not None:
                    busy.append((self._begin(trial), trial, time.monotonic()))
                if not busy:
                    return
                select.select([lane.wire for lane, _, _ in busy if lane.wire], [], [], 1.0)
                busy = [(lane, trial, at) for lane, trial, at in busy if self._goes_on(lane, trial, at)]
        finally:
            for lane, _, _ in busy:
                lane.kill()

    def _begin(self, trial: Trial) -> Child:
        self.begun += 1
        number, board = self.begun, Board()
        planted = "" if trial.name == CONTROL else trial.name

        def body(line: Line) -> None:
            wish = Wish(planted=planted, keep=False, say=self.wish.say)
            run_lane(number, self.directory / f"l{number}", self.template, board, line, wish)

        lane = Child(trial.name, body)
        lane.fork()
        lane.tell(plan=next(trial.plans).as_json())
        return lane

    def _goes_on(self, lane: Child, trial: Trial, began_at: float) -> bool:
        """Take what the lane has said, and give it its next plan; False: this trial is over."""
        if lane.look() == "dead":
            raise RuntimeError(f"the lane of {lane.name} died")
        lane.listen()
        for said in lane.heard:
            self._take(trial, said)
        lane.heard.clear()
        if not lane.idle:
            return True
        plan = None if trial.is_seen else next(trial.plans, None)
        if plan is not None:
            lane.tell(plan=plan.as_json())
            return True
        trial.wall_s = time.monotonic() - began_at
        end_lane(lane)
        return False

    def _take(self, trial: Trial, said: dict[str, Any]) -> None:
        if "error" in said:
            raise RuntimeError(said["error"] + said["trace"])
        result = Result(**said["done"]["result"])
        trial.tried += 1
        trial.found += result.faults
        if self.wish.show_all or (trial.name == CONTROL and result.faults):
            aim = plan_from(said["done"]["plan"]).aim
            words = [f"  {fault['kind']}: {fault['detail']}" for fault in result.faults]
            head = f"{trial.name}: {trial.tried} (aim {aim}) {result.wall_s:.1f} s, stretch {result.stretch}"
            self.wish.say("\n".join([head, *words, *result.log]))
