"""Everything around one operation as real processes: the web server, a provider that counts, and agents."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ledger.access import Grant
from ledger.faults import ARMED
from ledger.models import Attempt, Operation, Provider
from ledger.queries.invariants import findings
from ledger.reconciliation import reconcile_once, sweep_once
from ledger.rules.keys import correlation_id
from ledger.transactions import database_clock
from tests.support import make
from tests.support.cast import Cast
from tests.support.processes import wait_until
from tests.support.provider import ProviderProcess, asking, sending

ROOT = Path(__file__).parents[2]
REFUND, MAIL = "refund.create", "email.send"
RESOURCES = {REFUND: "refunds", MAIL: "messages"}
ARGS: dict[str, dict[str, Any]] = {
    REFUND: {"amount": 125, "currency": "EUR"},
    MAIL: {"to": "ada@example.org"},
}
WITHIN_S = 40.0

SHORT = {"dispatch_timeout_s": 0.5, "settle_s": 0.2}
RULES = {
    REFUND: {"effect": "payment", "idempotent": True, "key_ttl_s": 3600, "provider": "refunds", **SHORT},
    MAIL: {"effect": "message", "provider": "messages", **SHORT},
}


def configuration(url: str, tool: str) -> dict[str, Any]:
    """How the ledger asks the provider what became of a request."""
    return asking(f"{url}/{RESOURCES[tool]}", ARGS[tool])


class Agent:
    """One life of one agent process."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.agent"],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            text=True,
        )

    def says(self) -> dict[str, Any]:
        """Its next line; fails where it ended without one."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the agent ended with {self.process.wait(10)} and no word"
        said: dict[str, Any] = json.loads(line)
        return said

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait(10) == -signal.SIGKILL
        assert self.process.stdout is not None
        self.process.stdout.close()

    def end(self) -> dict[str, Any]:
        """How it ended by itself."""
        said = self.says()
        assert self.process.wait(20) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()
        return said


class Reachable(Protocol):
    """A web server of the ledger."""

    @property
    def address(self) -> str: ...


@dataclass
class World:
    """One tenant with one agent, its provider, and the operation the tests are about."""

    people: Cast
    server: Reachable
    provider: ProviderProcess
    database: str
    tool: str = REFUND
    key_text: str = ""
    operation_key: str = "the-operation"

    def prepare(self) -> World:
        make.policy(self.people.tenant, tools=RULES)
        for tool, resource in RESOURCES.items():
            Provider.objects.create(
                tenant=self.people.tenant,
                name=resource,
                adapter="http",
                config=configuration(self.provider.url, tool),
            )
        grant = Grant(scopes=["tool:*"], verbs=["ingest", "read"], days=1)
        self.key_text = make.key_of(self.people.agent, grant)[0]
        return self

    def let_the_ledger_send(self, **rule: Any) -> None:
        """From now on refunds are sent by the ledger itself."""
        make.policy(self.people.tenant, tools={REFUND: {**RULES[REFUND], "executor": "ledger", **rule}})
        url = self.provider.url
        send = sending(f"{url}/{RESOURCES[REFUND]}", ARGS[REFUND])
        config = {**configuration(url, REFUND), "send": send}
        Provider.objects.filter(name=RESOURCES[REFUND]).update(config=config)

    # --- agents --------------------------------------------------------------------------------------------

    def agent(self, *, stop_at: str = "", freeze_at: str = "") -> tuple[str, Agent]:
        """Start the agent, the same way every time; what it was told at first."""
        agent = Agent(
            {
                "LEDGER_URL": self.server.address,
                "LEDGER_API_KEY": self.key_text,
                "PROVIDER_URL": self.provider.url,
                "OPERATION_KEY": self.operation_key,
                "TOOL": self.tool,
                "RESOURCE": RESOURCES[self.tool],
                "ARGS": json.dumps(ARGS[self.tool]),
                "STOP_AT": stop_at,
                "FREEZE_AT": freeze_at,
            }
        )
        return str(agent.says()["told"]), agent

    def killed_at(self, point: str) -> dict[str, Any]:
        """An agent that got as far as this point; what it said there."""
        _, agent = self.agent(stop_at=point)
        said = agent.says()
        agent.kill()
        return said

    def killed_while_sending(self, mode: str) -> None:
        """An agent whose request hangs at the provider: accept_then_hang after the effect, hang before it."""
        self.provider.set_mode(mode, on="send", times=1)
        _, agent = self.agent()
        self.provider.wait_for_hanging(timeout=WITHIN_S)
        agent.kill()

    def restarted(self) -> tuple[str, dict[str, Any]]:
        """The same agent again, to its own end: what it was told, and how it ended."""
        told, agent = self.agent()
        return told, agent.end()

    # --- the ledger ----------------------------------------------------------------------------------------

    @property
    def operation(self) -> Operation:
        """The one that was named, or the only one."""
        named = Operation.objects.filter(operation_key=self.operation_key).first()
        return named or Operation.objects.get()

    @property
    def newest(self) -> Attempt:
        attempts = Attempt.objects.filter(operation=self.operation)
        return attempts.select_related("operation", "policy").latest("number")

    def sweep_until(self, state: str) -> None:
        """Sweep until the newest attempt is there; its lease has to run out first."""
        self._until(lambda: (sweep_once(), self.newest.state == state)[1], state)

    def reconcile_until(self, *states: str) -> str:
        self._until(lambda: (reconcile_once(), self.newest.state in states)[1], str(states))
        return self.newest.state

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, within_s=WITHIN_S, what=f"{what}; it is {self.newest.state}")

    def end_back_off(self) -> None:
        Attempt.objects.filter(pk=self.newest.pk).update(send_again_at=database_clock())

    def command(self, *arguments: str, dies_at: str = "") -> int:
        """Run a program of ours on this ledger; its exit code."""
        environment = {**os.environ, "DATABASE_URL": self.database, ARMED: dies_at}
        ran = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            check=False,
            timeout=WITHIN_S,
        )
        return ran.returncode

    # --- what became of it ---------------------------------------------------------------------------------

    @property
    def effects(self) -> int:
        operation = self.operation
        return self.provider.effects(correlation_id(str(operation.tenant_id), operation.operation_key))

    def history(self) -> list[tuple[str, str]]:
        """What happened, by whom, oldest first."""
        events = self.operation.events.order_by("sequence")
        assert all(event.actor for event in events)
        return [(str(event.kind), str(event.actor_kind)) for event in events]

    def check_sound(self) -> None:
        assert list(findings()) == []
