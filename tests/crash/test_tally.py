"""A tally adds up what several runs have counted about one product, and takes nothing of another's."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.crash.suite.conductor import Wish, plans_for
from tests.crash.suite.schedule import Result
from tests.crash.suite.table import Run
from tests.crash.suite.tally import SUITE, Tally, TallyRefused, Tree, at, tree_at

A1 = Tree(product="a1", suite="s1")


def told(seed: int, *faults: str) -> dict[str, object]:
    found = [{"kind": kind, "detail": "what"} for kind in faults]
    result = Result(seed, "intent.answer", 1.0, found, {"operations": 2}, {"agent": 1}, 0.5, log=["a log"])
    return asdict(result)


def test_two_runs_add_up_although_the_first_was_cut_off_in_a_line(tmp_path: Path) -> None:
    tally = Tally(tmp_path / "tally", A1)
    assert tally.counted_into(Run(1, 2)) == frozenset()
    tally.add(told(7), Counter({("intent.answer", "kill"): 2}), restarts=1)
    tally.add(told(9, "stuck"), Counter({("intent.answer", "lost"): 1}), restarts=0)
    with tally.path.open("a") as file:
        file.write('{"result": {"se')
    Tally(tally.path, A1).counted_into(Run(1, 2))
    tally.add(told(8), Counter({("intent.answer", "kill"): 1}), restarts=0)

    run = Run(1, 2)
    assert tally.counted_into(run) == {7, 8, 9}
    assert run.strikes == {("intent.answer", "kill"): 3, ("intent.answer", "lost"): 1}
    assert (run.schedules, run.schedules_before, run.restarts, run.red_seeds) == (3, 3, 1, [9])
    assert (run.counts, run.zombies, run.wrong) == ({"operations": 6}, {"agent": 3}, {"stuck": 1})
    assert run.red


def test_what_was_green_is_folded_and_what_was_red_stands_alone(tmp_path: Path) -> None:
    tally = Tally(tmp_path / "tally", A1)
    tally.counted_into(Run(1, 2))
    for seed in (1, 3, 2, 9):
        tally.add(told(seed), Counter({("intent.answer", "kill"): seed}), restarts=1)
    tally.add(told(5, "stuck"), Counter(), restarts=0)
    Tally(tally.path, Tree("a1", "s2")).add(told(4), Counter(), restarts=0)
    first, second = Run(1, 2), Run(1, 2)
    assert tally.counted_into(first) == {1, 2, 3, 4, 5, 9}
    assert len(tally.path.read_text().splitlines()) == len(["product", "green by s1", "by s2", "red"])
    assert tally.counted_into(second) == {1, 2, 3, 4, 5, 9}
    assert first == second
    assert (first.schedules, first.restarts, first.red_seeds) == (6, 4, [5])
    assert first.strikes == {("intent.answer", "kill"): 15}
    assert first.schedules_by_suite == {"s1": 5, "s2": 1}


def test_the_counts_of_another_product_are_not_mixed_in(tmp_path: Path) -> None:
    Tally(tmp_path / "tally", A1).counted_into(Run(1, 2))
    with pytest.raises(TallyRefused, match="is of a1, this is b2"):
        Tally(tmp_path / "tally", Tree("b2", "s1")).counted_into(Run(1, 2))


def test_what_was_red_is_run_again_once_the_suite_is_mended(tmp_path: Path) -> None:
    before, mended = (Tally(tmp_path / "tally", Tree("a1", suite)) for suite in ("s1", "s2"))
    before.counted_into(Run(1, 2))
    before.add(told(7), Counter(), restarts=0)
    before.add(told(8, "stuck"), Counter(), restarts=0)
    run = Run(1, 2)
    assert mended.counted_into(run) == {7}
    assert (run.red, run.red_before) == (False, [8])
    mended.add(told(8), Counter(), restarts=0)
    mended.add(told(9, "stuck"), Counter(), restarts=0)
    run = Run(1, 2)
    assert mended.counted_into(run) == {7, 8, 9}
    assert (run.red_seeds, run.red_before) == ([9], [8])


def commit(checkout: Path, **files: str) -> Tree:
    for name, text in files.items():
        place = checkout / (SUITE if name == "suite" else name)
        place.mkdir(parents=True, exist_ok=True)
        (place / "file").write_text(text)
    by = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*by, "commit", "-q", "--allow-empty", "-m", "more")):
        subprocess.run([shutil.which("git") or "git", "-C", checkout, *words], check=True)
    return tree_at(checkout)


def test_a_tree_has_a_name_only_while_it_is_as_committed(tmp_path: Path) -> None:
    with pytest.raises(TallyRefused, match="git checkout"):
        tree_at(tmp_path)
    commit(tmp_path)
    (tmp_path / "new").touch()
    with pytest.raises(TallyRefused, match="changes"):
        tree_at(tmp_path)
    with pytest.raises(TallyRefused, match="changes"):
        at(tmp_path.parent / "outside", tmp_path)


def test_a_tally_may_lie_in_the_checkout_that_it_counts(tmp_path: Path) -> None:
    committed = commit(tmp_path)
    (tmp_path / "tally").touch()
    assert at(tmp_path / "tally", tmp_path).tree == committed


def test_product_and_suite_change_apart(tmp_path: Path) -> None:
    first = commit(tmp_path, ledger="a", suite="a")
    assert commit(tmp_path, docs="a", tests="a") == first
    suite = commit(tmp_path, suite="b")
    assert (suite.product == first.product, suite.suite == first.suite) == (True, False)
    product = commit(tmp_path, ledger="b")
    assert (product.product == suite.product, product.suite == suite.suite) == (False, True)


def test_seeds_that_are_counted_are_not_run_again(tmp_path: Path) -> None:
    wish = Wish(schedules=5, seed=3, tally=Tally(tmp_path / "tally", A1))
    assert [plan.seed for plan in plans_for(wish, frozenset({4, 6, 99}))] == [3, 5, 7]
