"""One schedule: chaos, then quiet until nothing moves, then the verdict."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from tests.crash.suite.chaos import Chaos
from tests.crash.suite.lane import AGENTS, Lane
from tests.crash.suite.plan import Plan
from tests.crash.suite.quiet import Quiet
from tests.crash.suite.scene import Scene
from tests.crash.suite.tenants import World

EXCUSES = frozenset({"revoke", "narrow", "suspend", "publish", "variant", "press", "cancel"})
"""After one of these an operation may wait for an agent that may not send it any more."""


@dataclass
class Result:
    """What came of one schedule. `faults` are what the judge found: kind and detail; none is green."""

    seed: int
    aim: str
    faults: list[dict[str, str]]
    counts: dict[str, int]
    zombies: dict[str, int]
    wall_s: float
    log: list[str] = field(default_factory=list)


def run(lane: Lane, plan: Plan) -> Result:
    """Run one plan on a lane that is at rest."""
    started_at = time.monotonic()
    made = lane.clerk("prepare", plan=plan.as_json())
    world = World(**{**made, "correlation_ids": tuple(made["correlation_ids"])})
    lane.tell_provider("_script", _scripts(plan, world))
    lane.arm(plan.faults)
    scene = Scene(lane, plan, world)
    Chaos(scene).run()
    restless = Quiet(scene).run()
    found = _judge(scene)
    faults = [*found.pop("faults"), *({"kind": "stuck", "detail": words} for words in restless)]
    _tidy(scene)
    return Result(
        seed=plan.seed,
        aim=plan.aim,
        faults=faults,
        counts={name: found[name] for name in ("operations", "attempts", "effects", "approved_sends")},
        zombies=found["zombies"],
        wall_s=time.monotonic() - started_at,
        log=scene.log,
    )


def _scripts(plan: Plan, world: World) -> dict[str, Any]:
    return {
        mark: {"sends": list(o.sends), "look_ups": list(o.look_ups), "keys_s": o.keys_s}
        for mark, o in zip(world.correlation_ids, plan.operations, strict=True)
    }


def _judge(scene: Scene) -> dict[str, Any]:
    actors = [scene.lane.children[name] for name in (*AGENTS, "desk")]
    verdict: dict[str, Any] = scene.lane.clerk(
        "judge",
        tenant_id=scene.world.tenant_id,
        correlation_ids=scene.world.correlation_ids,
        effects=str(scene.lane.journal_of_effects),
        resumed=scene.resumed,
        journals=[str(scene.journal(actor)) for actor in actors],
        may_wait=any(happening.what in EXCUSES for happening in scene.plan.happenings),
    )
    return verdict


def _tidy(scene: Scene) -> None:
    """Remove the actors' journals; what was wrong with them is in the verdict."""
    for name in (*AGENTS, "desk"):
        scene.journal(scene.lane.children[name]).unlink(missing_ok=True)
