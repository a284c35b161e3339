"""The chaos: everything that is planned, at its time, while agents work and are started again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.crash.suite.children import Child, ChildFailed
from tests.crash.suite.lane import AGENTS, BYSTANDER, DELIVERER, WORKERS
from tests.crash.suite.plan import Happening, Message
from tests.crash.suite.scene import Scene

AGENT_AGAIN_S = 0.12
LATE_S = 0.25
USUAL_HOLD_MS = 300
FINISHED_WITHIN_S = 20.0
INSISTS_EVERY_S = 0.06
DELIVERS_EVERY_S = 0.08
STANDS_IN = WORKERS[-1]
MOST_CHAOS = 4


@dataclass
class Chaos:
    """One run of the chaos of a scene."""

    scene: Scene
    _resume_at: dict[str, float] = field(default_factory=dict)
    _start_at: dict[int, float] = field(default_factory=dict)
    _doing: dict[str, int] = field(default_factory=dict)
    _queue: list[tuple[float, str, str]] = field(default_factory=list)
    _insisted_at: float = 0.0
    _delivered_at: float = 0.0

    def run(self) -> None:
        scene, plan = self.scene, self.scene.plan
        scene.began = time.monotonic()
        self._start_at = {n: o.starts_ms / 1000 for n, o in enumerate(plan.operations)}
        messages, happenings = list(plan.messages), list(plan.happenings)
        while self._goes_on():
            self._look_after_children()
            while messages and messages[0].at_ms <= scene.now * 1000:
                self._deliver(messages.pop(0))
            while happenings and happenings[0].at_ms <= scene.now * 1000:
                self._happen(happenings.pop(0))
            self._insist()
            self._send_deliveries()
            self._run_queue()
            self._start_agents()
            scene.lane.wait(0.01)
        self._finish()

    def _goes_on(self) -> bool:
        """As long as planned; longer, where the first blow has not fallen yet, or somebody is still held."""
        plan, now_ms = self.scene.plan, self.scene.now * 1000
        waits = bool(plan.insists and plan.faults) and not self.scene.lane.board.has_struck(plan.blow)
        waits = waits or bool(self._resume_at)
        return now_ms < plan.chaos_ms or (waits and now_ms < MOST_CHAOS * plan.chaos_ms)

    def _insist(self) -> None:
        """Once more what the aimed point waits for."""
        plan, scene = self.scene.plan, self.scene
        every_s = INSISTS_EVERY_S * scene.lane.stretch
        if scene.now < self._insisted_at + every_s or plan.insists in ("", "agents"):
            return
        self._insisted_at = scene.now
        if plan.insists.startswith("letter:"):
            self._happen(Happening(0, "letter", detail=plan.insists.removeprefix("letter:")))
        elif plan.insists.startswith("press:"):
            self._happen(Happening(0, "press", detail=plan.insists.removeprefix("press:")))
        elif plan.insists == "cancel":
            self._happen(Happening(0, "cancel"))
        else:
            self._queue += [(scene.now, worker, plan.insists) for worker in self._at_hand()]

    def _at_hand(self) -> list[str]:
        """One worker or two, as the plan has it, of those that are not held and have no message waiting."""
        free = [worker for worker in WORKERS if worker not in self._resume_at]
        waiting = {worker for _, worker, _ in self._queue}
        return [worker for worker in free[: 1 + self.scene.plan.seed % 2] if worker not in waiting]

    def _send_deliveries(self) -> None:
        """The deliverer's pass: at a hint, and regularly, as it would be without one; by another worker while
        it is held."""
        scene = self.scene
        deliverer = scene.lane.children[STANDS_IN if DELIVERER in self._resume_at else DELIVERER]
        told = self._take_hints() and not scene.plan.hints_lost
        is_time = scene.now >= self._delivered_at + DELIVERS_EVERY_S * scene.lane.stretch
        if scene.plan.destinations and deliverer.idle and (told or is_time):
            self._delivered_at = scene.now
            deliverer.tell(task="deliver")

    def _take_hints(self) -> int:
        children = list(self.scene.lane.struck)
        told = sum(child.hints for child in children)
        for child in children:
            child.hints = 0
        return told

    # --- children -----------------------------------------------------------------------------------------

    def _look_after_children(self) -> None:
        """Reap and fork, resume, start PostgreSQL again, and take what was said."""
        if self.scene.lane.server.heal():
            self.scene.note("postgres started again")
        for child in self.scene.lane.struck:
            self._look_after(child)
            self._take_words(child)

    def _look_after(self, child: Child) -> None:
        state = child.look()
        if child.struck is not None and not child.stopped:
            self._note_strike(child)
        if state == "dead":
            self._again(self._doing.pop(child.name, None))
            self.scene.lane.fork_again(child)
        elif state == "stopped":
            self._stopped(child)

    def _note_strike(self, child: Child) -> None:
        struck, child.struck = child.struck, None
        if struck is not None:
            self.scene.note(f"{child.life_id} {struck['kind']} at {struck['struck']}")

    def _stopped(self, child: Child) -> None:
        """Whoever started it takes it for dead: somebody else does its work. It comes back all the same."""
        if child.name not in self._resume_at:
            hold_ms = child.struck["hold_ms"] if child.struck else USUAL_HOLD_MS
            self._note_strike(child)
            self._resume_at[child.name] = self.scene.now + hold_ms / 1000
            self._again(self._doing.pop(child.name, None))
        elif self.scene.now >= self._resume_at[child.name]:
            self._resume(child)

    def _resume(self, child: Child) -> None:
        self._resume_at.pop(child.name, None)
        self.scene.resumed[child.life_id] = time.time()
        child.resume()
        self.scene.note(f"{child.life_id} resumed")

    def _take_words(self, child: Child) -> None:
        for said in child.heard:
            number = self._doing.pop(child.name, None)
            hopeless = str(said.get("done")).startswith("Refused")
            if not self.scene.heard_of(child, said, number) and not hopeless:
                self._again(number)
        child.heard.clear()

    def _again(self, number: int | None) -> None:
        if number is not None and number not in self.scene.ended:
            self._start_at[number] = self.scene.now + AGENT_AGAIN_S * self.scene.lane.stretch

    def _finish(self) -> None:
        """The end of the chaos: nothing strikes any more, whoever was stopped comes back, and all finish."""
        self._queue.clear()
        self.scene.lane.board.disarm()
        self.scene.lane.tell_provider("_quiet", {})
        give_up_at = time.monotonic() + FINISHED_WITHIN_S
        while time.monotonic() < give_up_at:
            for child in self.scene.lane.struck:
                if child.stopped:
                    self._resume(child)
            self._look_after_children()
            if all(child.idle for child in self.scene.lane.struck):
                return
            self.scene.lane.wait(0.01)

    # --- what is planned ----------------------------------------------------------------------------------

    def _deliver(self, message: Message) -> None:
        workers = WORKERS if message.delivery == "twice" else (message.worker,)
        at = self.scene.now + (LATE_S * self.scene.lane.stretch if message.delivery == "late" else 0)
        if message.delivery != "lost":
            self._queue += [(at, worker, message.task) for worker in workers]

    def _run_queue(self) -> None:
        """Messages whose worker is free; the others wait."""
        for entry in list(self._queue):
            at, worker, task = entry
            if at <= self.scene.now and self.scene.lane.children[worker].idle:
                self._queue.remove(entry)
                self.scene.lane.children[worker].tell(task=task)

    def _happen(self, happening: Happening) -> None:
        """An actor that is busy misses its moment."""
        if happening.what in ("press", "letter"):
            came_about = self._at_the_desk(happening)
        elif happening.what in ("cancel", "variant", "rival"):
            came_about = self._by_agent(happening)
        elif happening.what == "wipe":
            came_about = bool(self._queue)
            self._queue.clear()
        else:
            came_about = self._from_outside(happening)
        self.scene.met[f"happenings: {happening.what}"] += came_about

    def _at_the_desk(self, happening: Happening) -> bool:
        scene, desk = self.scene, self.scene.lane.children["desk"]
        if not desk.idle:
            return False
        is_press = happening.what == "press"
        more = {"truths": scene.truths()} if is_press else {"subject": ""}
        desk.tell(**scene.press(do=happening.what, kind=happening.detail, **more))
        return True

    def _by_agent(self, happening: Happening) -> bool:
        child, number = self.scene.lane.children[BYSTANDER], happening.operation
        if not child.idle:
            return False
        if happening.what == "cancel":
            child.tell(**self.scene.cancel(child, number))
        else:
            variant = happening.what == "variant"
            child.tell(**self.scene.work(child, number, variant=variant))
        return True

    def _from_outside(self, happening: Happening) -> bool:
        self.scene.note(f"{happening.what} {happening.operation}")
        try:
            self.scene.happen(happening.what, happening.operation)
        except ChildFailed as failed:  # rows that a stopped process holds: an administrator tries later
            self.scene.note(f"it failed: {str(failed).splitlines()[0]}")
            return False
        return True

    def _start_agents(self) -> None:
        for number, at in list(self._start_at.items()):
            child = self._free_agent(number)
            if child is not None and at <= self.scene.now:
                del self._start_at[number]
                self._doing[child.name] = number
                child.tell(**self.scene.work(child, number))

    def _free_agent(self, number: int) -> Child | None:
        names = AGENTS if number % 2 == 0 else AGENTS[::-1]
        children = self.scene.lane.children
        return next((children[name] for name in names if children[name].idle), None)
