"""Keeps the agents busy, kills them at the boundaries their work names, and lets them go on.

One thread. A job stays on the list until the ledger says that it is done or closed, and is posted again every
few seconds: that is all an agent does, before and after a crash, and how an approval given in the browser is
noticed and acted upon.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dashboard.management.demo import told
from dashboard.management.demo.jobs import Boundary, Job, Reply, Said
from dashboard.management.demo.programs import Agent, Bank, ProgramFailed
from dashboard.management.demo.state import Work
from dashboard.management.demo.stories import CYCLE, OPENING, Act, with_changed_amount
from dashboard.management.demo.wire import ProviderSilent

LOOK_EVERY_S = 0.1
SOON_S, USUALLY_S, SELDOM_S = 1.5, 4.0, 30.0
QUICK_POSTS = 20
"""A job is posted often while what the ledger says of it is new."""

MOST_QUESTIONS = 9
"""So many questions on the desk are enough; until some are decided, only work that asks none is done."""
MOST_SLOW_TRANSFERS = 2
"""The bank settles its oldest slow transfer when there are more, so that something stays UNKNOWN."""

LIVELY_ACTS, MOST_ACTS = 150, 400
"""Acts of one run: an hour at a lively pace, then seldom, then none. What is open is still attended to."""
LIVELY_S, QUIET_S = 20.0, 600.0
PAUSE_VARIES_S = 11
"""Lively pauses last so many seconds longer, in turn."""


@dataclass
class Pace:
    """When an open job is posted again, and what the ledger last said of it."""

    due_at: float = 0.0
    posts: int = 0
    said: str = ""


class Conductor:
    """The agents of all tenants, their work, and the provider they send it to. `beside` runs each round."""

    def __init__(
        self,
        agents: Mapping[str, Agent],
        bank: Bank,
        work: Work,
        tell: Callable[[str], None],
        beside: Callable[[], None] = lambda: None,
    ) -> None:
        self._agents = agents
        self._bank = bank
        self._work = work
        self._tell = tell
        self._beside = beside
        self._paces: dict[tuple[str, str], Pace] = {}
        self._acts = 0
        self._next_act_at = 0.0

    def run(self) -> None:
        """Work until the process is told to stop."""
        while True:
            self.step()
            self._beside()
            time.sleep(LOOK_EVERY_S)

    def step(self) -> None:
        """At most one new piece of work, then one go at everything that is due."""
        if self._bank.ensure_running():
            self._tell("the provider had died; it is back with its books")
        now = time.monotonic()
        if now >= self._next_act_at and self._acts < MOST_ACTS:
            self._next_act_at = now + self._pause_s()
            self._play(self._next_act())
        for job in [job for job in self._work.open if self._pace(job).due_at <= now]:
            self._go(job)

    def stop(self) -> None:
        for program in (*self._agents.values(), self._bank):
            program.kill()

    def _pause_s(self) -> float:
        if self._work.opened < len(OPENING):
            return 0.0
        return LIVELY_S + self._acts * 7 % PAUSE_VARIES_S if self._acts < LIVELY_ACTS else QUIET_S

    def _next_act(self) -> Act:
        self._acts += 1
        if self._work.opened < len(OPENING):
            self._work.opened += 1
            return OPENING[self._work.opened - 1]
        act = CYCLE[self._work.number % len(CYCLE)]
        return CYCLE[0] if act.asks_a_person and self._questions() >= MOST_QUESTIONS else act

    def _questions(self) -> int:
        return sum(1 for job in self._work.open if self._pace(job).said in {"", "MANUAL_REVIEW"})

    def _play(self, act: Act) -> None:
        job = act.job(self._work.series, self._work.next_number())
        self._add(job)
        self._go(job)
        if act.changed_afterwards:
            changed = with_changed_amount(job)
            self._add(changed)
            self._go(changed)

    def _add(self, job: Job) -> None:
        """On the list of the next life already: a job that kills its worker does so once."""
        self._work.open.append(job.without_stop())
        self._work.save()

    def _go(self, job: Job) -> None:
        """One go at a job; a worker that reaches its boundary is killed there."""
        agent = self._agents[job.tenant]
        try:
            reply = agent.ask(job)
        except ProgramFailed:
            agent.kill()
            reply = Reply(said=Said.UNAVAILABLE)
        if job.stop_at is not None and reply.said is Said.AT_BOUNDARY:
            self._kill(agent, job, job.stop_at, reply)
        else:
            self._note(job, reply)

    def _kill(self, agent: Agent, job: Job, boundary: Boundary, reply: Reply) -> None:
        stored = boundary is Boundary.BEFORE_ANSWER and self._wait_until_stored(job, reply)
        agent.kill()
        self._tell(told.killed(job, boundary))
        self._pace(job).due_at = time.monotonic() + SOON_S
        if stored:
            self._settle_the_oldest()

    def _wait_until_stored(self, job: Job, reply: Reply) -> bool:
        """Whether the provider has the effect, and is slow about it: such a transfer is remembered."""
        try:
            thing = self._bank.thing_of(job.resource, reply.correlation_id)
        except ProviderSilent:
            return False
        if thing is None or thing["status"] != "pending":
            return False
        self._work.slow_transfers.append(str(thing["id"]))
        self._work.save()
        return True

    def _settle_the_oldest(self) -> None:
        if len(self._work.slow_transfers) > MOST_SLOW_TRANSFERS:
            refund_id = self._work.slow_transfers.pop(0)
            self._bank.settle(refund_id)
            self._work.save()
            self._tell(f"bank: {refund_id} has arrived at last; the next look-up will find it")

    def _note(self, job: Job, reply: Reply) -> None:
        pace = self._pace(job)
        line = told.news(job, reply, before=pace.said)
        if line:
            self._tell(line)
        now_said = reply.state or reply.said.value
        pace.posts = pace.posts + 1 if now_said == pace.said else 0
        pace.said = now_said
        pace.due_at = time.monotonic() + _wait_s(reply, pace.posts)
        if reply.said in {Said.DONE, Said.CLOSED}:
            self._take_off(job)

    def _take_off(self, job: Job) -> None:
        self._work.open = [
            other for other in self._work.open if (other.tenant, other.name) != (job.tenant, job.name)
        ]
        self._work.save()
        self._paces.pop((job.tenant, job.name), None)

    def _pace(self, job: Job) -> Pace:
        return self._paces.setdefault((job.tenant, job.name), Pace())


def _wait_s(reply: Reply, posts: int) -> float:
    if reply.said in {Said.REFUSED, Said.UNAVAILABLE}:
        return SELDOM_S if posts < QUICK_POSTS else QUIET_S  # every refusal is a row
    return SOON_S if posts < QUICK_POSTS else USUALLY_S
