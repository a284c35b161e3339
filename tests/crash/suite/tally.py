"""A tally on disk: what several runs have counted about one product, a line of JSON for each schedule.

A long run outlives a mend of the suite: what was green stays counted, and what was red under another version
of the suite is run again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.crash.suite.schedule import Result
from tests.crash.suite.table import Run

Strikes = Counter[tuple[str, str]]
NOT_THE_PRODUCT = frozenset({"tests", "docs", "README.md"})
SUITE = "tests/crash/suite"


class TallyRefused(Exception):
    """What would be counted does not belong into this file."""


@dataclass(frozen=True)
class Tree:
    """What is counted: the product by a hash, and the suite by its entry in git."""

    product: str
    suite: str


def tree_at(checkout: Path) -> Tree:
    """What is checked out there. Raises `TallyRefused` where files differ from its commit."""
    if _git(checkout, "status", "--porcelain"):
        raise TallyRefused("A tally is of what is committed, and there are changes beside it.")
    lines = [line.partition("\t") for line in _git(checkout, "ls-tree", "HEAD").splitlines()]
    product = sorted((name, what) for what, _, name in lines if name not in NOT_THE_PRODUCT)
    suite = _git(checkout, "ls-tree", "HEAD", SUITE).partition("\t")[0]
    return Tree(hashlib.sha256(json.dumps(product).encode()).hexdigest()[:16], suite)


def at(path: Path, checkout: Path) -> Tally:
    """The tally of this file for what is checked out there. Raises `TallyRefused`."""
    return Tally(path, tree_at(checkout))


def _git(checkout: Path, *words: str) -> str:
    command = [shutil.which("git") or "git", "-C", str(checkout), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as failed:
        raise TallyRefused(f"A tally needs a git checkout: {failed}") from failed
    return done.stdout.strip()


@dataclass(frozen=True)
class Tally:
    """The file, and the product it is of. Its first line names that; the last may be half written."""

    path: Path
    tree: Tree

    def counted_into(self, run: Run) -> frozenset[int]:
        """Add what earlier runs have counted; their seeds. Raises `TallyRefused` for another product's."""
        if not self.path.exists():
            self.path.write_text(json.dumps({"product": self.tree.product}) + "\n", encoding="utf-8")
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        head, *lines = map(json.loads, whole.splitlines())
        if head != {"product": self.tree.product}:
            raise TallyRefused(f"{self.path} is of {head.get('product')}, this is {self.tree.product}.")
        if whole != text:
            self.path.write_text(whole, encoding="utf-8")
        counted = [line for line in lines if line["suite"] == self.tree.suite or not line["result"]["faults"]]
        for line in counted:
            run.add(Result(**line["result"]))
            run.strikes.update({(point, kind): times for point, kind, times in line["strikes"]})
            run.restarts += line["restarts"]
        run.schedules_before = run.schedules
        run.red_before = [line["result"]["seed"] for line in lines if line not in counted]
        run.schedules_by_suite = Counter(line["suite"][-8:] for line in counted)
        return frozenset(line["result"]["seed"] for line in counted)

    def add(self, told: Mapping[str, object], strikes: Strikes, restarts: int) -> None:
        """One more finished schedule: its result as data, without its log, and what struck since the last."""
        line = {
            "suite": self.tree.suite,
            "result": {**told, "log": []},
            "strikes": [[point, kind, times] for (point, kind), times in strikes.items()],
            "restarts": restarts,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
