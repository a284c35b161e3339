"""A tally on disk: what several runs of one tree have counted, a line of JSON for each finished schedule."""

from __future__ import annotations

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


class TallyRefused(Exception):
    """The counts of this tree do not belong into this file."""


def tree_at(checkout: Path) -> str:
    """The commit that is checked out there. Raises `TallyRefused` where files differ from it."""
    if _git(checkout, "status", "--porcelain"):
        raise TallyRefused("A tally is of one commit, and there are changes beside it.")
    return _git(checkout, "rev-parse", "HEAD")


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
    """The file, and the commit it is of. Its first line names that; the last may be half written."""

    path: Path
    tree: str

    def counted_into(self, run: Run) -> frozenset[int]:
        """Add what earlier runs have counted; their seeds. Raises `TallyRefused` for another tree's."""
        if not self.path.exists():
            self.path.write_text(json.dumps({"tree": self.tree}) + "\n", encoding="utf-8")
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        head, *lines = map(json.loads, whole.splitlines())
        if head != {"tree": self.tree}:
            raise TallyRefused(f"{self.path} is of {head.get('tree')}, this is {self.tree}.")
        if whole != text:
            self.path.write_text(whole, encoding="utf-8")
        for line in lines:
            run.add(Result(**line["result"]))
            run.strikes.update({(point, kind): times for point, kind, times in line["strikes"]})
            run.restarts += line["restarts"]
        run.schedules_before = run.schedules
        return frozenset(line["result"]["seed"] for line in lines)

    def add(self, told: Mapping[str, object], strikes: Strikes, restarts: int) -> None:
        """One more finished schedule: its result as data, without its log, and what struck since the last."""
        line = {
            "result": {**told, "log": []},
            "strikes": [[point, kind, times] for (point, kind), times in strikes.items()],
            "restarts": restarts,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
