"""Each decision killed before, inside each statement of, and after its commit: nothing of it is there, or all
of it; and the same press again gives it exactly once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from ledger.queries.history import chains_of
from ledger.queries.invariants import findings
from tests.crash.decider import REFUSED
from tests.crash.decisions import CASES, About
from tests.crash.world import ROOT
from tests.support.beside import database_url_of_tests
from tests.support.cast import cast

pytestmark = [pytest.mark.crash, pytest.mark.slow]

FEWEST_STEPS = 3
Stored = Mapping[str, tuple[int, str]]


@dataclass(frozen=True)
class Ended:
    """How a press ended: its exit code (negative: the signal), and the steps it passed."""

    ended: int
    steps: tuple[str, ...]


class Decider:
    """One process in which everything is loaded, and which forks one for each press."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def press(self, case: str, about: About, *, dies_at: int = 0) -> Ended:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"case": case, "about": about, "dies_at": dies_at}) + "\n")
        stdin.flush()
        said: dict[str, Any] = json.loads(stdout.readline())
        return Ended(said["ended"], tuple(said["steps"]))


@pytest.fixture(scope="module")
def decider(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Decider]:
    with django_db_blocker.unblock():
        environment = {**os.environ, "DATABASE_URL": database_url_of_tests()}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.decider"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Decider(process)
        process.communicate()
    assert process.returncode == 0


def stored() -> Stored:
    """Of every table: how many rows, and a hash of all of them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        cursor.execute(
            " UNION ALL ".join(
                f"SELECT '{name}', count(*), md5(coalesce(string_agg(r::text, ' ' ORDER BY r::text), '')) "  # noqa: S608
                f'FROM "{name}" r'
                for name in tables
            )
        )
        return {name: (rows, content) for name, rows, content in cursor.fetchall()}


def grown(before: Stored, after: Stored) -> Mapping[str, int]:
    """By how many rows which table grew."""
    return {name: after[name][0] - rows for name, (rows, _) in before.items() if after[name][0] != rows}


def touched(before: Stored, after: Stored) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def sound() -> None:
    assert [chain.find_break() for chain in chains_of() if chain.find_break()] == []
    assert list(findings()) == []


@pytest.mark.parametrize("name", CASES)
def test_all_of_it_is_there_or_nothing(transactional_db: None, decider: Decider, name: str) -> None:
    case, people = CASES[name], cast()
    about = case.prepare(people, 1)
    before, step = stored(), 0
    steps: tuple[str, ...] = ("",)
    while steps[-1] != "before_commit":
        step += 1
        died = decider.press(name, about, dies_at=step)
        steps = died.steps
        assert (died.ended, len(steps)) == (-signal.SIGKILL, step), steps
        assert touched(before, stored()) == set(), f"killed at step {step}, {steps[-1]}"
    assert step >= FEWEST_STEPS
    assert steps.count("before_commit") == 1
    assert case.done(about) == 0
    again = decider.press(name, about)
    assert (again.ended, again.steps) == (0, (*steps, "after_commit"))
    assert case.done(about) == 1
    whole = grown(before, stored()), touched(before, stored())
    sound()

    about = case.prepare(people, 2)
    before = stored()
    assert decider.press(name, about, dies_at=step + 1).ended == -signal.SIGKILL
    assert (grown(before, stored()), touched(before, stored())) == whole, "killed after its commit"
    assert case.done(about) == 1
    assert decider.press(name, about).ended in (0, REFUSED)
    assert case.done(about) == 1
    sound()
