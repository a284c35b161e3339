"""A tally on disk: what several runs have counted about one product, a line of JSON for each schedule.

A long run outlives a mend of the suite: what was green stays counted, and what was red under another version
of the suite is run again. It outlives its machine too: whoever opens the file folds what was green into one
line for each version of the suite, so that it stays small enough to be committed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from tests.crash.suite.table import Run

Strikes = Counter[tuple[str, str]]
NOT_THE_PRODUCT = frozenset({".ci", ".gitignore", "tests", "docs", "README.md"})
SUITE = "tests/crash/suite"


class TallyRefused(Exception):
    """What would be counted does not belong into this file."""


@dataclass(frozen=True)
class Tree:
    """What is counted: the product by a hash, and the suite by its entry in git."""

    product: str
    suite: str


def tree_at(checkout: Path, beside: Path | None = None) -> Tree:
    """What is checked out there. Raises `TallyRefused` where a file but `beside` differs from its commit."""
    if _git(checkout, "status", "--porcelain", "--", ".", *_except(checkout, beside)):
        raise TallyRefused("A tally is of what is committed, and there are changes beside it.")
    lines = [line.partition("\t") for line in _git(checkout, "ls-tree", "HEAD").splitlines()]
    product = sorted((name, what) for what, _, name in lines if name not in NOT_THE_PRODUCT)
    suite = _git(checkout, "ls-tree", "HEAD", SUITE).partition("\t")[0]
    return Tree(hashlib.sha256(json.dumps(product).encode()).hexdigest()[:16], suite)


def at(path: Path, checkout: Path) -> Tally:
    """The tally of this file for what is checked out there. Raises `TallyRefused`."""
    return Tally(path, tree_at(checkout, path))


def _except(checkout: Path, path: Path | None) -> Iterator[str]:
    if path is not None and path.resolve().is_relative_to(checkout.resolve()):
        yield f":(exclude){path.resolve().relative_to(checkout.resolve())}"


def _git(checkout: Path, *words: str) -> str:
    command = [shutil.which("git") or "git", "-C", str(checkout), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as failed:
        raise TallyRefused(f"A tally needs a git checkout: {failed}") from failed
    return done.stdout.strip()


@dataclass
class Counted:
    """A line: schedules that one version of the suite has judged. `seeds`: the first and the last of each
    unbroken row of them; `faults`: of the only one, for what is red is never folded."""

    suite: str
    seeds: list[tuple[int, int]]
    counts: Counter[str] = field(default_factory=Counter)
    zombies: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    strikes: Strikes = field(default_factory=Counter)
    restarts: int = 0
    faults: list[dict[str, str]] = field(default_factory=list)

    @property
    def all_seeds(self) -> Iterator[int]:
        return chain.from_iterable(range(first, last + 1) for first, last in self.seeds)

    def as_line(self) -> str:
        strikes = [[point, kind, times] for (point, kind), times in self.strikes.items()]
        return json.dumps(vars(self) | {"strikes": strikes}) + "\n"


def counted_from(line: Mapping[str, Any]) -> Counted:
    """What `as_line` wrote."""
    sums = {name: Counter(line[name]) for name in ("counts", "zombies", "met")}
    strikes: Strikes = Counter({(point, kind): times for point, kind, times in line["strikes"]})
    seeds = [(first, last) for first, last in line["seeds"]]
    return Counted(**{**line, **sums, "strikes": strikes, "seeds": seeds})


def folded(lines: Iterable[Counted]) -> list[Counted]:
    """The same counts in few lines: the red ones as they are, and one of all green ones for each suite."""
    lines = list(lines)
    greens: dict[str, list[Counted]] = {}
    for line in lines:
        if not line.faults:
            greens.setdefault(line.suite, []).append(line)
    return [*(_sum_of(suite, green) for suite, green in greens.items()), *(x for x in lines if x.faults)]


def _sum_of(suite: str, lines: list[Counted]) -> Counted:
    total = Counted(suite, _rows_of(chain.from_iterable(line.all_seeds for line in lines)))
    for line in lines:
        _add_sums(line, total)
    return total


def _add_sums(line: Counted, to: Counted | Run) -> None:
    to.counts.update(line.counts)
    to.zombies.update(line.zombies)
    to.met.update(line.met)
    to.strikes.update(line.strikes)
    to.restarts += line.restarts


def _rows_of(seeds: Iterable[int]) -> list[tuple[int, int]]:
    rows = groupby(enumerate(sorted(seeds)), key=lambda place: place[1] - place[0])
    return [(row[0][1], row[-1][1]) for row in (list(found) for _, found in rows)]


@dataclass(frozen=True)
class Tally:
    """The file, and the product it is of. Its first line names that; the last may be half written."""

    path: Path
    tree: Tree

    def counted_into(self, run: Run) -> frozenset[int]:
        """Add what earlier runs have counted, and fold it; their seeds. Raises `TallyRefused` for another
        product's."""
        lines = folded(self._lines())
        self._write(lines)
        counted = [line for line in lines if line.suite == self.tree.suite or not line.faults]
        for line in counted:
            _add(line, run)
        run.schedules_before = run.schedules
        run.red_before = [seed for line in lines if line not in counted for seed in line.all_seeds]
        return frozenset(seed for line in counted for seed in line.all_seeds)

    def add(self, told: Mapping[str, Any], strikes: Strikes, restarts: int) -> None:
        """One more finished schedule: its result as data, and what struck since the last."""
        line = Counted(
            suite=self.tree.suite,
            seeds=[(told["seed"], told["seed"])],
            counts=told["counts"],
            zombies=told["zombies"],
            met=told["met"],
            strikes=strikes,
            restarts=restarts,
            faults=told["faults"],
        )
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line.as_line())

    def _lines(self) -> Iterator[Counted]:
        if not self.path.exists():
            return
        text = self.path.read_text(encoding="utf-8")
        head, *lines = map(json.loads, text[: text.rfind("\n") + 1].splitlines())
        if head != {"product": self.tree.product}:
            raise TallyRefused(f"{self.path} is of {head.get('product')}, this is {self.tree.product}.")
        yield from map(counted_from, lines)

    def _write(self, lines: list[Counted]) -> None:
        """In one move, so that whoever is cut off here has lost nothing."""
        head = json.dumps({"product": self.tree.product}) + "\n"
        draft = self.path.with_name(self.path.name + ".new")
        draft.write_text(head + "".join(line.as_line() for line in lines), encoding="utf-8")
        draft.replace(self.path)


def _add(line: Counted, run: Run) -> None:
    seeds = list(line.all_seeds)
    _add_sums(line, run)
    run.blame(seeds[0], line.faults)
    run.schedules += len(seeds)
    run.schedules_by_suite[line.suite[-8:]] += len(seeds)
