"""The crash suite itself: what it claims about the code is true, and a short run of it is green."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.suite import injection
from tests.crash.suite.board import Board
from tests.crash.suite.chance import plan_of
from tests.crash.suite.plan import Fault, plan_from, stretched
from tests.crash.suite.planted import CONTROL, Findings, Trial
from tests.crash.suite.plants import PLANTS
from tests.crash.suite.points import CALL_VERB, KINDS, NOT_STRUCK, POINTS, TRANSACTIONS, kinds_at
from tests.crash.suite.safety import BOUNDARIES

ROOT = Path(__file__).parents[2]
PACKAGES = ("ledger.reconciliation", "ledger.ingest", "ledger.deliveries", "review")
"""Whose transactions the suite strikes."""
SCHEDULES = "300"


def callers_of_durable(package: str) -> Iterator[str]:
    """Every function of a module or of its classes in a package, commands aside, that calls `durable`."""
    for path in sorted((ROOT / package.replace(".", "/")).rglob("*.py")):
        if "management" in path.parts:
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for name, node in functions_in(ast.parse(path.read_text())):
            calls = (call for call in ast.walk(node) if isinstance(call, ast.Call))
            if "durable" in {call.func.id for call in calls if isinstance(call.func, ast.Name)}:
                yield f"{module}.{name}"


def functions_in(module: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{f.name}", f) for f in node.body if isinstance(f, ast.FunctionDef))


def test_every_transaction_of_the_product_has_a_name() -> None:
    found = {caller for package in PACKAGES for caller in callers_of_durable(package)}
    assert found == {CALL_VERB, *TRANSACTIONS, *NOT_STRUCK}


def test_every_boundary_has_points_and_every_point_belongs_to_one() -> None:
    assert all(BOUNDARIES.values())
    struck = {point for points in BOUNDARIES.values() for point in points}
    assert struck <= set(POINTS)
    left = {point.split(".")[0] for point in set(POINTS) - struck}
    assert left == {"agent", "heartbeat", "recover"}


def test_every_point_has_a_way_to_strike() -> None:
    assert all(set(kinds_at(point)) <= set(KINDS) and kinds_at(point) for point in POINTS)
    assert len(set(POINTS)) == len(POINTS)


def test_new_orders_wait_for_the_blow_that_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a process could say that it is calm, and die."""
    monkeypatch.setattr(injection, "compress", lambda _: None)
    has_begun, falls = threading.Event(), threading.Event()

    def tell(**_: object) -> None:
        has_begun.set()
        assert falls.wait(10)

    injector = injection.Injector(Board(), tell, Path(), armed=[Fault("ack.statement", 1, "error")])
    with ThreadPoolExecutor(2) as threads:
        struck = threads.submit(injector.reached, "ack.statement")
        assert has_begun.wait(10)
        calm = threads.submit(injector.obey, {"faults": [], "patience": 1.0})
        with pytest.raises(TimeoutError):
            calm.result(timeout=0.1)
        falls.set()
        with pytest.raises(injection.Struck):
            struck.result(timeout=10)
        calm.result(timeout=10)
    assert injector.armed == []


@pytest.mark.parametrize("seed", [1, 17, 4_711])
def test_a_plan_is_the_same_each_time_and_after_a_journey_as_json(seed: int) -> None:
    plan = plan_of(seed)
    assert plan_of(seed) == plan
    assert plan_from(plan.as_json()) == plan
    assert stretched(plan, 1.0) == plan


def test_consecutive_plans_aim_at_every_point() -> None:
    assert {plan_of(seed).aim for seed in range(len(POINTS))} == set(POINTS)


def crash_test(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "crash_test", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_is_refused_in_production() -> None:
    ran = crash_test(
        LEDGER_ENV="production", LEDGER_SECRET_KEY="s" * 50, LEDGER_ALLOWED_HOSTS="ledger.example.org"
    )
    assert ran.returncode == 3, ran.stderr


@pytest.mark.crash
@pytest.mark.slow
def test_random_schedules_leave_one_effect_and_no_open_question() -> None:
    ran = crash_test("--schedules", SCHEDULES, "--lanes", "4", "--no-keep", "--json")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    table = json.loads(ran.stdout)
    assert table["schedules"] >= int(SCHEDULES)
    assert table["never_hit"] == []
    wrong = [table[name] for name in ("effects > 1", "lost acknowledgements", "stuck", "fsck findings")]
    assert wrong == [0, 0, 0, 0]


@pytest.mark.parametrize("name", PLANTS)
def test_every_plant_has_plans_that_can_be_kept(name: str) -> None:
    plans = [PLANTS[name].shape(n) for n in (1, 2)]
    assert [plan_from(plan.as_json()) for plan in plans] == plans
    assert {fault.point for plan in plans for fault in plan.faults} <= set(POINTS)


def test_a_plant_that_was_not_seen_fails_the_run() -> None:
    unseen, green = Trial("epoch ignored", iter(())), Trial(CONTROL, iter(()))
    seen = Trial("epoch ignored", iter(()), found=[{"kind": "history", "detail": "an answer after another"}])
    assert not Findings([seen, green]).red
    assert Findings([unseen, green]).red
    assert Findings([replace(seen, found=[{"kind": "errors", "detail": "TypeError"}]), green]).red
    assert Findings([seen, replace(green, found=seen.found)]).red


@pytest.mark.crash
@pytest.mark.slow
def test_every_planted_bug_turns_it_red() -> None:
    ran = crash_test("--planted", "--lanes", "2", "--json")
    table = json.loads(ran.stdout)
    bugs = {row["bug"]: row for row in table["bugs"]}
    assert bugs.keys() == {CONTROL, *PLANTS}
    assert len(PLANTS) >= 10
    assert [name for name, row in bugs.items() if not row["seen"]] == [CONTROL], ran.stdout + ran.stderr
    assert ran.returncode == 0
