"""The conductor: forks the lanes, hands out plans, gathers results, keeps failing plans."""

from __future__ import annotations

import os
import select
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.crash.suite import database, lane, schedule
from tests.crash.suite.board import Board
from tests.crash.suite.chance import plan_of
from tests.crash.suite.children import Child, Line, freeze
from tests.crash.suite.compressed import compress
from tests.crash.suite.plan import Plan, plan_from
from tests.crash.suite.plants import plant
from tests.crash.suite.points import POINTS
from tests.crash.suite.schedule import Result
from tests.crash.suite.table import Run
from tests.crash.suite.tally import Tally

CORPUS = Path(__file__).parents[1] / "corpus"
EMPTY_EVERY = 50
EXTRA_ROUNDS = 4
ENDED_WITHIN_S = 60
ENOUGH_FOR_EVERY_POINT = 250
"""In a run of fewer schedules points that were not hit are shown, and do not make it red."""


@dataclass(frozen=True)
class Wish:
    """What a run is to do. `tally`: where it counts, beside the runs before it."""

    schedules: int = 300
    seed: int = 1
    lanes: int = 4
    replay: Path | None = None
    planted: str = ""
    tally: Tally | None = None
    corpus: Path = CORPUS
    keep: bool = True
    show_all: bool = False
    say: Callable[[str], None] = print


def plans_for(wish: Wish, counted: frozenset[int] = frozenset()) -> Iterator[Plan]:
    """The corpus first, then one plan after the other from the seed; into a tally these alone, and none whose
    seed is counted there."""
    if wish.replay is not None:
        plan = plan_from(wish.replay.read_text())
        yield from (plan for _ in range(wish.schedules))
        return
    if wish.tally is None:
        yield from (plan_from(path.read_text()) for path in sorted(wish.corpus.glob("*.json")))
    seeds = range(wish.seed, wish.seed + wish.schedules)
    yield from (plan_of(seed) for seed in seeds if seed not in counted)


def run(wish: Wish) -> Run:
    """Run everything; the first line said is the seed."""
    wish.say(f"seed {wish.seed}")
    with tempfile.TemporaryDirectory(prefix="lc-", ignore_cleanup_errors=True) as directory:
        return _Conductor(wish, Path(directory)).run()


class _Conductor:
    def __init__(self, wish: Wish, directory: Path) -> None:
        self.wish, self.directory = wish, directory
        self.run_so_far = Run(wish.seed, wish.lanes)
        self.counted = wish.tally.counted_into(self.run_so_far) if wish.tally else frozenset[int]()
        self.boards = [Board() for _ in range(wish.lanes)]
        self.strikes_told: Counter[tuple[str, str]] = Counter()
        self.lanes: list[Child] = []

    def run(self) -> Run:
        started_at, cpu_before = time.monotonic(), lane.own_cpu_s()
        template = database.make_template(self.directory / "t")
        freeze()
        self.lanes = [self._lane(number, template) for number in range(self.wish.lanes)]
        for child in self.lanes:
            child.fork()
        try:
            self._hand_out(plans_for(self.wish, self.counted))
            if self.wish.replay is None and self.wish.schedules >= ENOUGH_FOR_EVERY_POINT:
                self.run_so_far.all_points_wanted = True
                self._aim_at_what_is_left()
        finally:
            self._end_lanes()
        found = self.run_so_far
        found.wall_s = time.monotonic() - started_at
        found.cpu_s = lane.own_cpu_s() - cpu_before
        return found

    def _lane(self, number: int, template: Path) -> Child:
        def body(line: Line) -> None:
            run_lane(number, self.directory / f"l{number}", template, self.boards[number], line, self.wish)

        return Child(f"lane {number}", body)

    def _hand_out(self, plans: Iterable[Plan]) -> None:
        waiting = iter(plans)
        busy = {child.name: self._give(child, waiting) for child in self.lanes}
        while any(busy.values()):
            wires = [child.wire for child in self.lanes if child.wire is not None]
            select.select(wires, [], [], 1.0)
            for child in self.lanes:
                self._gather(child)
                if child.idle and busy[child.name]:
                    busy[child.name] = self._give(child, waiting)

    def _give(self, child: Child, waiting: Iterator[Plan]) -> bool:
        plan = next(waiting, None)
        if plan is not None:
            child.tell(plan=plan.as_json())
        return plan is not None

    def _gather(self, child: Child) -> None:
        if child.look() == "dead":
            raise RuntimeError(f"{child.name} died")
        child.listen()
        for said in child.heard:
            self._take(said)
        child.heard.clear()

    def _take(self, said: dict[str, Any]) -> None:
        if "error" in said:
            raise RuntimeError(said["error"] + said["trace"])
        result = Result(**said["done"]["result"])
        self.run_so_far.add(result)
        strikes = self._new_strikes()
        self.run_so_far.strikes += strikes
        self.run_so_far.restarts += said["done"]["restarts"]
        if self.wish.tally is not None:
            self.wish.tally.add(said["done"]["result"], strikes, said["done"]["restarts"])
        if result.faults:
            self._keep(result, plan_from(said["done"]["plan"]))
        elif self.wish.show_all:
            self.wish.say(
                f"green {result.seed} (aim {result.aim}) {result.wall_s:.2f} s, stretch {result.stretch}\n"
                + "\n".join(result.log)
            )

    def _new_strikes(self) -> Counter[tuple[str, str]]:
        """Those of all lanes since the last schedule ended."""
        before, self.strikes_told = self.strikes_told, sum((b.strikes() for b in self.boards), Counter())
        return self.strikes_told - before

    def _keep(self, result: Result, plan: Plan) -> None:
        """Say what went wrong, and keep the plan for the next run."""
        words = "\n".join(f"  {fault['kind']}: {fault['detail']}" for fault in result.faults)
        self.wish.say(f"RED {result.seed} (aim {result.aim})\n{words}\n" + "\n".join(result.log))
        if self.wish.keep and not self.wish.planted:
            self.wish.corpus.mkdir(exist_ok=True)
            (self.wish.corpus / f"{result.seed}.json").write_text(plan.as_json() + "\n")

    def _aim_at_what_is_left(self) -> None:
        """Chance has missed some points: a few more schedules aim at these alone."""
        seed = self.wish.seed + self.wish.schedules
        for _ in range(EXTRA_ROUNDS):
            left = self.run_so_far.never_hit
            seed += len(POINTS) - seed % len(POINTS)
            self._hand_out(plan_of(seed + POINTS.index(point)) for point in left)
            seed += 1

    def _end_lanes(self) -> None:
        for child in self.lanes:
            for words in end_lane(child):
                self.run_so_far.wrong["fsck"] += 1
                self.wish.say(f"RED at the end of {child.name}: {words}")


def end_lane(lane: Child) -> list[str]:
    """Let it clear up, and what its last look at everything found."""
    found: list[list[str]] = []
    if lane.pid and lane.wire is not None:
        lane.tell(end=True)
    give_up_at = time.monotonic() + ENDED_WITHIN_S
    while not found and lane.look() != "dead" and time.monotonic() < give_up_at:
        lane.listen()
        found = [said["done"]["found"] for said in lane.heard if "found" in said.get("done", {})]
        time.sleep(0.02)
    lane.kill()
    return found[0] if found else []


def run_lane(number: int, directory: Path, template: Path, board: Board, line: Line, wish: Wish) -> None:
    """The whole life of a lane."""
    directory.mkdir()
    _log_to(directory / "lane.log")
    server = database.copied(template, directory / "h")
    database.point_django_at(server.home)
    compress()
    server.start()
    if wish.planted:
        plant(wish.planted, server.home)
    with lane.opened(number, directory, server, board) as opened:
        line.answer_forever(_Work(opened, wish).answer)


class _Work:
    """A lane's own loop: one plan after the other, and now and then a clean table."""

    def __init__(self, opened: lane.Lane, wish: Wish) -> None:
        self.lane, self.wish, self.done = opened, wish, 0
        schedule.find_the_pace(opened)

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        if "end" in command:
            found = [] if self.wish.planted else self.lane.clerk("check_everything")
            self.lane.close()
            return {"found": found}
        plan = plan_from(command["plan"])
        restarts = self.lane.server.restarts
        result = self._run(plan)
        self.done += 1
        if self.done % EMPTY_EVERY == 0:
            result.faults += self._start_clean()
        return {
            "plan": command["plan"],
            "result": asdict(result),
            "restarts": self.lane.server.restarts - restarts,
        }

    def _run(self, plan: Plan) -> Result:
        try:
            return schedule.run(self.lane, plan)
        except Exception:  # noqa: BLE001  (a schedule that breaks off is red, and the run goes on)
            broken = {"kind": "broken", "detail": traceback.format_exc()[-3000:]}
            self.lane.start_over()
            return Result(plan.seed, plan.aim, self.lane.stretch, [broken], {}, {}, 0.0)

    def _start_clean(self) -> list[dict[str, str]]:
        """The whole fsck over what the last schedules left, then empty tables."""
        found = self.lane.clerk("check_everything")
        self.lane.clerk("empty")
        return [{"kind": "fsck", "detail": words} for words in found]


def _log_to(path: Path) -> None:
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(file, sys.stderr.fileno())
    os.close(file)
