"""What both phases of a schedule share: the tenant on its lane, what actors are told, what was noted."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.suite.children import Child
from tests.crash.suite.effects import effects_in
from tests.crash.suite.lane import Lane
from tests.crash.suite.plan import Plan
from tests.crash.suite.tenants import World, args_of, operation_key, tool

ENDED = ("sent", "done")


@dataclass
class Scene:
    """One plan on one lane. `resumed`: processes that came back after they were stopped, and when
    (time.time); `ended`: operations whose agent knows that it is done; `met`: what came about of all that
    may; `quiet_at`: since when nothing that was planned is done any more (time.time)."""

    lane: Lane
    plan: Plan
    world: World
    log: list[str] = field(default_factory=list)
    resumed: dict[str, float] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    met: Counter[str] = field(default_factory=Counter)
    quiet_at: float = 0.0
    began: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> float:
        """Seconds since the chaos began."""
        return time.monotonic() - self.began

    def note(self, words: str) -> None:
        self.log.append(f"{self.now * 1000:7.0f} {words}")

    def heard_of(self, child: Child, said: dict[str, Any], number: int | None) -> bool:
        """Note what a child said; whether its operation is done, as far as its agent knows."""
        words = str(said.get("done") or said.get("error") or "")
        if words and words != "[]":
            self.note(f"{child.life_id}: {words[:300]}")
        if number is not None and words.startswith(ENDED):
            self.ended.add(number)
            return True
        return False

    def journal(self, child: Child) -> Path:
        return self.lane.directory / f"journal-{self.plan.seed}-{child.name}"

    def spool(self, child: Child) -> Path:
        """Where its reports wait that could not be delivered."""
        return self.lane.directory / f"state-{self.plan.seed}-{child.name}"

    def work(self, child: Child, number: int, *, variant: bool = False) -> dict[str, Any]:
        """What an agent is told: this operation, or the same key with other arguments."""
        args = args_of(self.plan, number)
        return {
            "do": "variant" if variant else "work",
            "journal": str(self.journal(child)),
            "task": {
                "ledger_url": self.lane.web_url,
                "key": self.world.key,
                "provider": self.lane.provider_at,
                "operation_key": operation_key(number),
                "tool": tool(number),
                "args": {**args, "amount": 7} if variant else args,
                "state_dir": str(self.spool(child)) if self.plan.state_dir else "",
                "heartbeat": self.plan.operations[number].heartbeat,
                "run_calls": self.plan.run_calls,
            },
        }

    def cancel(self, child: Child, number: int) -> dict[str, Any]:
        return {
            "do": "cancel",
            "url": self.lane.web_url,
            "key": self.world.key,
            "operation_key": operation_key(number),
            "journal": str(self.journal(child)),
        }

    def press(self, **command: Any) -> dict[str, Any]:
        """What the desk is told."""
        desk = self.lane.children["desk"]
        who = {"tenant_id": self.world.tenant_id, "slug": self.world.slug}
        return {**who, "journal": str(self.journal(desk)), **command}

    @property
    def calm_consumers(self) -> dict[str, Any]:
        """The same consumers, honest from now on."""
        return {place: {**told, "answers": ()} for place, told in self.world.consumers.items()}

    def happen(self, what: str, number: int) -> None:
        """Something from outside, through the clerk."""
        self.lane.clerk(
            "happen", world=self.world.as_data, plan=self.plan.as_json(), what=what, number=number
        )

    def truths(self) -> dict[str, list[str]]:
        """By operation key: the references of what the provider did."""
        effects = effects_in(self.lane.journal_of_effects, self.world.correlation_ids)
        return {
            operation_key(number): [effect.id for effect in effects if effect.correlation_id == mark]
            for number, mark in enumerate(self.world.correlation_ids)
        }
