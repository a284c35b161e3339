"""One schedule: chaos, then quiet until nothing moves, then the verdict."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from typing import Any

from tests.crash.suite.chance import plan_of
from tests.crash.suite.chaos import Chaos
from tests.crash.suite.children import Child
from tests.crash.suite.lane import AGENTS, BYSTANDER, Lane
from tests.crash.suite.plan import Plan, stretched
from tests.crash.suite.provider import HIDDEN
from tests.crash.suite.quiet import Quiet
from tests.crash.suite.scene import Scene
from tests.crash.suite.tenants import World

USUALLY_S = 0.04
"""What the preparation of a schedule takes on a machine at rest."""
MOST_STRETCH = 10.0
WAITS_AFTER = ("revoke", "narrow", "suspend", "variant")
"""After one of these an operation may wait for an agent that may not send it any more; and after a variant,
which a person may prefer, for whoever posted it, and does not come again."""
ENOUGH_CALLS = 50
"""A run with so many pays for whatever a plan may send."""
COUNTED = (
    *("operations", "attempts", "effects", "approved_sends", "late_sends", "stale_answers"),
    *("deliveries", "tries", "duplicates_seen", "dead_letters"),
)


@dataclass
class Result:
    """What came of one schedule. `faults` are what the judge found: kind and detail; none is green. `met`:
    how often each of the things came about that may."""

    seed: int
    aim: str
    stretch: float
    faults: list[dict[str, str]]
    counts: dict[str, int]
    zombies: dict[str, int]
    wall_s: float
    met: dict[str, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)


def run(lane: Lane, unstretched: Plan) -> Result:
    """Run one plan on a lane that is at rest."""
    started_at = time.monotonic()
    plan = stretched(unstretched, lane.stretch)
    made = lane.clerk("prepare", plan=plan.as_json())
    world = World(**{**made, "correlation_ids": tuple(made["correlation_ids"])})
    lane.tell_provider("_script", {"stretch": lane.stretch, "scripts": _scripts(plan, world)})
    lane.arm(plan.faults, patience=lane.stretch, consumers=world.consumers)
    _measure(lane, time.monotonic() - started_at)
    scene = Scene(lane, plan, world)
    Chaos(scene).run()
    restless = Quiet(scene).run()
    scene.met.update(lane.tell_provider("_quiet", {}))
    found = _judge(scene)
    faults = [
        *found.pop("faults"),
        *({"kind": "stuck", "detail": words} for words in restless),
        *({"kind": "errors", "detail": words} for words in _unplanned(lane)),
    ]
    _tidy(scene)
    return Result(
        seed=plan.seed,
        stretch=lane.stretch,
        aim=plan.aim,
        faults=faults,
        counts={name: found[name] for name in COUNTED},
        zombies=found["zombies"],
        met={**scene.met, **{f"outcomes: {name}": times for name, times in found["outcomes"].items()}},
        wall_s=time.monotonic() - started_at,
        log=scene.log,
    )


def _unplanned(lane: Lane) -> list[str]:
    """Errors that no blow explains, from all children, told once."""
    said = [words for child in lane.struck for words in child.unplanned]
    for child in lane.struck:
        child.unplanned.clear()
    return said


def find_the_pace(lane: Lane) -> None:
    """Before the first schedule: how slow is this machine?"""
    for _ in range(2):
        started_at = time.monotonic()
        lane.clerk("prepare", plan=plan_of(0).as_json())
        lane.arm((), patience=1.0, consumers={})
        lane.stretch = _pace(time.monotonic() - started_at)


def _pace(took_s: float) -> float:
    return round(min(MOST_STRETCH, max(1.0, took_s / USUALLY_S)), 2)


def _measure(lane: Lane, took_s: float) -> None:
    """How slow the machine is at the moment: the next schedule has so much more time."""
    lane.stretch = round(0.5 * lane.stretch + 0.5 * _pace(took_s), 2)


def _scripts(plan: Plan, world: World) -> dict[str, Any]:
    return {
        mark: {"sends": list(o.sends), "look_ups": list(o.look_ups), "keys_s": o.keys_s}
        for mark, o in zip(world.correlation_ids, plan.operations, strict=True)
    }


def _judge(scene: Scene) -> dict[str, Any]:
    actors = _actors(scene)
    verdict: dict[str, Any] = scene.lane.clerk(
        "judge",
        tenant_id=scene.world.tenant_id,
        correlation_ids=scene.world.correlation_ids,
        effects=str(scene.lane.journal_of_effects),
        blind=_blind(scene),
        resumed=scene.resumed,
        journals=[str(scene.journal(actor)) for actor in actors],
        spools=[str(scene.spool(actor)) for actor in actors],
        may_wait=_may_wait(scene),
        quiet_at=scene.quiet_at,
        books=str(scene.lane.books_of_consumers),
        places=list(scene.world.consumers),
    )
    return verdict


def _blind(scene: Scene) -> list[str]:
    """Of which operations a look-up may say *absent* although they were done: they are seen late, not seen by
    this key, or done late."""
    return [
        mark
        for mark, planned in zip(scene.world.correlation_ids, scene.plan.operations, strict=True)
        if "slow" in planned.sends or {"lag", *HIDDEN}.intersection(planned.look_ups)
    ]


def _may_wait(scene: Scene) -> bool:
    """May operations wait for their agent, because it may not send them any more, or no run pays for them?"""
    came_about = any(scene.met[f"happenings: {what}"] for what in WAITS_AFTER)
    return came_about or 0 < scene.plan.run_calls < ENOUGH_CALLS


def _tidy(scene: Scene) -> None:
    """Remove what the actors kept; what was wrong with it is in the verdict."""
    for actor in _actors(scene):
        shutil.rmtree(scene.spool(actor), ignore_errors=True)
        scene.journal(actor).unlink(missing_ok=True)


def _actors(scene: Scene) -> list[Child]:
    """Who keeps a journal of what it was told."""
    return [scene.lane.children[name] for name in (*AGENTS, BYSTANDER, "desk")]
