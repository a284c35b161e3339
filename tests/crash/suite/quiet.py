"""The quiet phase: nothing strikes any more; work goes on until nothing moves, then a person answers."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.crash.suite.lane import AGENTS, DELIVERER, WORKERS
from tests.crash.suite.scene import Scene

MOST_ROUNDS = 1_000
"""Counted in rounds, not in seconds: a slow machine is not a stuck ledger. Most schedules need about ten."""
FAR_S = 40.0
"""What is due later than this waits for a deadline, not for work. The end of a lease that was given in the
quiet phase, to an agent that had stopped waiting for the answer, is not so far."""
MOST_REST_S = 0.2
REST_IN_VAIN_S = 0.01
TRIES = 3
PATIENCE = 20.0
Standing = dict[str, Any]


@dataclass
class Quiet:
    """One run of the quiet phase of a scene."""

    scene: Scene
    _tried: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _mark: str = ""

    def run(self) -> list[str]:
        """What still moved when time was up; empty where all came to rest."""
        self._make_whole()
        for _ in range(MOST_ROUNDS):
            standing = self._standing()
            if not any(
                work(standing) for work in (self._work, self._answer, self._ask_agents, self._deliver)
            ):
                return []
        return [f"not quiet after {MOST_ROUNDS} rounds: {self._standing()}"]

    def _make_whole(self) -> None:
        self.scene.note("quiet")
        self.scene.lane.server.heal()
        self.scene.lane.arm((), patience=PATIENCE, consumers=self.scene.calm_consumers)
        self.scene.quiet_at = time.time()
        self.scene.happen("calm", 0)
        for number, operation in enumerate(self.scene.plan.operations):
            if operation.late_provider:
                self.scene.happen("add_provider", number)

    def _standing(self) -> Standing:
        found: Standing = self.scene.lane.clerk(
            "standing",
            tenant_id=self.scene.world.tenant_id,
            delivers=bool(self.scene.plan.destinations),
        )
        found["mark"] = self._mark = str([found["moved"], found["items"]])
        return found

    def _work(self, standing: Standing) -> bool:
        """Do what is due, or wait for it. What was tried in vain is left until something has moved."""
        due = [thing for thing in standing["due"] if self._may_help(thing, standing)]
        now = [thing for thing in due if thing["in_s"] <= 0]
        for task in sorted({thing["task"] for thing in now} - {"agent"}):
            self._pass(task)
        for thing in now:
            self._tried[thing["task"], thing["operation"], standing["mark"]] += 1
            if thing["task"] == "agent" and self._run_agent(_number(thing["operation"])):
                self._tried[thing["task"], thing["operation"], standing["mark"]] = TRIES
        if due:
            self.scene.lane.wait(min(MOST_REST_S, self._rest_s(due, now, standing)))
        return bool(due)

    def _rest_s(self, due: list[dict[str, Any]], now: list[dict[str, Any]], standing: Standing) -> float:
        """Until something is due; longer each time that what is due was tried in vain, as where a provider
        wants to be left alone."""
        if not now:
            soonest_s: float = min(thing["in_s"] for thing in due)
            return max(0.003, soonest_s)
        in_vain = min(self._tried[thing["task"], thing["operation"], standing["mark"]] for thing in now) - 1
        return REST_IN_VAIN_S * in_vain

    def _may_help(self, thing: dict[str, Any], standing: Standing) -> bool:
        tried = self._tried[thing["task"], thing["operation"], standing["mark"]]
        return thing["in_s"] < FAR_S and tried < (TRIES if thing["task"] in ("agent", "send") else 50)

    def _pass(self, task: str) -> None:
        worker = self.scene.lane.children[DELIVERER if task == "deliver" else WORKERS[0]]
        said = self.scene.lane.ask(worker, task=task)
        self.scene.heard_of(worker, {"done": f"{task} {said.get('error', '')}"}, None)

    def _run_agent(self, number: int) -> bool:
        """Let the agent try; whether it was told that waiting will not help."""
        child = self.scene.lane.children[AGENTS[number % 2]]
        said = self.scene.lane.ask(child, **self.scene.work(child, number))
        self.scene.heard_of(child, said, number)
        self._tried["ask", str(number), self._mark] += 1
        return str(said.get("done")).startswith(("Refused", "PendingReview"))

    def _answer(self, standing: Standing) -> bool:
        """A person answers the first open question that was not answered in vain."""
        truths = self.scene.truths()
        for item in standing["items"]:
            if not self._tried[item["id"], standing["mark"]]:
                self._tried[item["id"], standing["mark"]] += 1
                desk = self.scene.lane.children["desk"]
                references = truths.get(item["operation"], [])
                command = self.scene.press(do="answer", item=item["id"], references=references)
                said = self.scene.lane.ask(desk, **command)
                self.scene.heard_of(desk, {"done": f"{item['reason']}: {said}"}, None)
                return True
        return False

    def _deliver(self, standing: Standing) -> bool:
        """A person mends what stands in the way of deliveries, whose consumers are honest now."""
        letters = [
            letter
            for letter in standing["letters"]
            if not self._tried[letter["kind"], letter["subject"], standing["mark"]]
        ]
        desk = self.scene.lane.children["desk"]
        for letter in letters:
            self._tried[letter["kind"], letter["subject"], standing["mark"]] += 1
            said = self.scene.lane.ask(desk, **self.scene.press(do="letter", **letter))
            self.scene.heard_of(desk, said, None)
        return bool(letters)

    def _ask_agents(self, standing: Standing) -> bool:
        """Agents that do not know how it ended ask again, once after each change."""
        asking = [
            number
            for number in range(len(self.scene.plan.operations))
            if number not in self.scene.ended and not self._tried["ask", str(number), standing["mark"]]
        ]
        for number in asking:
            self._run_agent(number)
        return bool(asking)


def _number(operation_key: str) -> int:
    return int(operation_key.partition(":")[2])
