"""The cases: who is stopped where, what happens meanwhile, and what must be true when it went on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ledger.models import ReviewItem
from ledger.queries.invariants import findings
from ledger.rules.states import State
from tests.crash.stack import table, verdict
from tests.crash.world import ARGS, REFUND, ROOT, Agent, Reachable, World
from tests.crash.written import all_rows, beyond_evidence
from tests.support import make
from tests.support.cast import cast
from tests.support.processes import is_stopped, wait_until
from tests.support.provider import ProviderProcess

WITHIN_S = 60.0
CONFLICT = "conflicting_evidence"


@dataclass(frozen=True)
class WentOn:
    """What one did after it was continued: effects there until then, and what was written beyond evidence."""

    effects_before: int
    written: list[str]


@dataclass(frozen=True)
class Case:
    """One zombie. `own`: effects that its own send must have had. `reason`: why the desk must have it now."""

    name: str
    play: Callable[[World], WentOn]
    own: int = 0
    reason: str = ""
    noticed: str = "nothing to notice"


@dataclass(frozen=True)
class Result:
    case: Case
    others: int
    own: int
    written: list[str]
    reason: str

    @property
    def row(self) -> tuple[object, ...]:
        desk = f"{self.reason}: {self.case.noticed}" if self.reason else self.case.noticed
        return (self.case.name, self.others, self.own, ", ".join(self.written) or "none", desk)

    @property
    def held(self) -> bool:
        return (self.others, self.own, self.reason) == (1, self.case.own, self.case.reason) and self._allowed

    @property
    def _allowed(self) -> bool:
        """A contradiction opens an item for a person; that is the ledger's answer to evidence."""
        return set(self.written) <= ({"ledger_reviewitem added"} if self.case.reason == CONFLICT else set())


HEAD = ("stopped", "effects of others", "of its own send", "written beyond evidence", "at the desk")


class Zombies:
    def __init__(self, ledger: Reachable, provider: ProviderProcess) -> None:
        self._ledger, self._provider = ledger, provider

    def show(self) -> int:
        """Play every case and print the table; 1 where something did not hold."""
        results = list(self._results())
        print(table(HEAD, [result.row for result in results]))
        wrong = {result.case.name: not result.held for result in results}
        return verdict(wrong | {f"fsck: {finding}": True for finding in findings()})

    def _results(self) -> Iterator[Result]:
        world = World(cast(), self._ledger, self._provider, os.environ["DATABASE_URL"]).prepare()
        for number, case in enumerate(CASES):
            self._provider.set_mode("honest")
            yield played(case, replace(world, operation_key=f"zombie:{number}"))


def played(case: Case, world: World) -> Result:
    """One case, on an operation of its own."""
    before = world.provider.total_effects()
    went_on = case.play(world)
    effects = world.effects
    assert world.provider.total_effects() - before == effects
    own = effects - went_on.effects_before
    item = ReviewItem.objects.filter(operation=world.operation, closed_at=None).first()
    reason = item.attempt.reason or CONFLICT if item else ""
    return Result(case, went_on.effects_before, own, went_on.written, reason)


# --- agents ------------------------------------------------------------------------------------------------


def overtaken_agent(world: World, *, other_stops_at: str = "") -> Agent:
    """An agent stopped with leave in hand until its attempt was found absent and another one sent."""
    _, zombie = world.agent(freeze_at="leave")
    zombie.says()
    wait_until(lambda: is_stopped(zombie.process.pid), within_s=WITHIN_S, what="the agent is stopped")
    world.sweep_until("UNKNOWN")
    world.reconcile_until("FAILED_RETRYABLE")
    world.end_back_off()
    if other_stops_at:
        world.killed_at(other_stops_at)
    else:
        told, ended = world.restarted()
        assert (told, ended["ended"], world.newest.state) == ("dispatch", "sent", "OUTCOME_CONFIRMED")
    assert world.effects == 1
    return zombie


def agent_goes_on(world: World) -> WentOn:
    zombie = overtaken_agent(world)
    return goes_on(world, zombie)


def agent_goes_on_after_the_key(world: World) -> WentOn:
    zombie = overtaken_agent(world)
    world.provider.forget_keys()
    return goes_on(world, zombie)


def agent_killed_after_its_own_send(world: World) -> WentOn:
    zombie = overtaken_agent(world)
    world.provider.forget_keys()
    return sends_and_dies(world, zombie)


def agent_killed_while_the_other_is_not_known(world: World) -> WentOn:
    """The other attempt has happened too and nobody has heard of it, so the provider is still to be asked."""
    zombie = overtaken_agent(world, other_stops_at="answered")
    world.provider.forget_keys()
    went_on = sends_and_dies(world, zombie)
    world.sweep_until("UNKNOWN")
    world.reconcile_until("MANUAL_REVIEW")
    return went_on


def goes_on(world: World, zombie: Agent) -> WentOn:
    """Continue it to its end."""
    effects, before = world.effects, all_rows()
    zombie.process.send_signal(signal.SIGCONT)
    zombie.process.wait(WITHIN_S)
    assert zombie.process.stdout is not None
    zombie.process.stdout.close()
    return WentOn(effects, beyond_evidence(before, all_rows()))


def sends_and_dies(world: World, zombie: Agent) -> WentOn:
    """Continue it until its own send has happened, and kill it before it hears of that."""
    effects, before = world.effects, all_rows()
    world.provider.set_mode("accept_then_hang", on="send", times=1)
    zombie.process.send_signal(signal.SIGCONT)
    world.provider.wait_for_hanging(timeout=WITHIN_S)
    zombie.kill()
    world.provider.release()
    return WentOn(effects, beyond_evidence(before, all_rows()))


# --- the ledger's own processes ----------------------------------------------------------------------------


@contextmanager
def frozen(world: World, point: str) -> Iterator[subprocess.Popen[bytes]]:
    """One pass of recovery in a process of its own, stopped at this point."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.frozen", point, "reconcile", "--once"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": world.database},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: is_stopped(process.pid), within_s=WITHIN_S, what=f"stopped at {point}")
        yield process
    finally:
        process.kill()
        process.wait()


def continued(world: World, process: subprocess.Popen[bytes]) -> WentOn:
    effects, before = world.effects, all_rows()
    process.send_signal(signal.SIGCONT)
    assert process.wait(WITHIN_S) == 0
    return WentOn(effects, beyond_evidence(before, all_rows()))


def reconciler_about_to_ask(world: World) -> WentOn:
    """Its lease runs out; another one asks, finds what happened, and settles it."""
    return overtaken_reconciler(world, "reconciler.claimed")


def reconciler_with_an_old_absent(world: World) -> WentOn:
    """It holds an *absent* from before the request arrived: believed, it would lead to a second send."""
    return overtaken_reconciler(world, "reconciler.answered")


def overtaken_reconciler(world: World, point: str) -> WentOn:
    world.killed_while_sending("hang")
    world.sweep_until("UNKNOWN")
    with frozen(world, point) as zombie:
        world.provider.release()
        wait_until(lambda: world.effects == 1, within_s=WITHIN_S, what="the late effect")
        world.reconcile_until("OUTCOME_CONFIRMED")
        assert world.newest.lookup_epoch >= 2
        return continued(world, zombie)


def sender_with_leave(world: World) -> WentOn:
    return overtaken_sender(world, "sender.leave_committed")


def sender_after_its_last_look(world: World) -> WentOn:
    """Nothing is asked any more after this point, so only the time it was given keeps it from sending."""
    return overtaken_sender(world, "sender.before_send", forgets=True)


def overtaken_sender(world: World, point: str, *, forgets: bool = False) -> WentOn:
    """Its lease runs out, the provider has nothing, and another sender sends."""
    make.recorded(world.people.key, REFUND, args=ARGS[REFUND], operation_key=world.operation_key)
    with frozen(world, point) as zombie:
        world.sweep_until("UNKNOWN")
        world.reconcile_until("FAILED_RETRYABLE")
        world.end_back_off()
        assert world.command("manage.py", "reconcile", "--once") == 0
        assert world.newest.state == State.OUTCOME_CONFIRMED
        if forgets:
            world.provider.forget_keys()
        return continued(world, zombie)


def sender_with_the_answer(world: World) -> WentOn:
    make.recorded(world.people.key, REFUND, args=ARGS[REFUND], operation_key=world.operation_key)
    with frozen(world, "sender.sent") as zombie:
        world.sweep_until("UNKNOWN")
        world.reconcile_until("OUTCOME_CONFIRMED")
        return continued(world, zombie)


def sent_by_the_ledger(play: Callable[[World], WentOn]) -> Callable[[World], WentOn]:
    """The same under a rule by which the ledger sends, with a lease long enough to be seen."""

    def under_own_rule(world: World) -> WentOn:
        world.let_the_ledger_send(dispatch_timeout_s=3)
        return play(world)

    return under_own_rule


CASES = (
    Case("agent with leave, the provider knows the key", agent_goes_on),
    Case(
        "agent with leave, the provider forgot the key",
        agent_goes_on_after_the_key,
        own=1,
        reason=CONFLICT,
        noticed="possibly done twice, by its own report",
    ),
    Case(
        "the same, killed after its send, the other not heard of",
        agent_killed_while_the_other_is_not_known,
        own=1,
        reason="several_matches",
        noticed="by a later look-up",
    ),
    Case(
        "the same, killed after its send, the other confirmed",
        agent_killed_after_its_own_send,
        own=1,
        noticed="NOT NOTICED: nobody asks about what is confirmed",
    ),
    Case("reconciler about to ask", reconciler_about_to_ask),
    Case("reconciler with an old *absent*", reconciler_with_an_old_absent),
    Case("sender with leave", sent_by_the_ledger(sender_with_leave)),
    Case(
        "sender after its last look at leave, key forgotten", sent_by_the_ledger(sender_after_its_last_look)
    ),
    Case("sender with the answer", sent_by_the_ledger(sender_with_the_answer)),
)
