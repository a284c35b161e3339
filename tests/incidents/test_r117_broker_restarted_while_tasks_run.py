"""R117: the broker restarts while tasks run, and the database is away just when the outcome is written.

Kind: an acknowledgement that is lost, taken for work that was not done.

The real stack of processes, with a real agent; so what is asserted after every other scenario is asked of
this ledger by its own commands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.crash.world import ARGS, REFUND, RULES, Agent, configuration
from tests.support.api import Api
from tests.support.processes import RunningLedger, wait_until
from tests.support.provider import ProviderProcess, sending

pytestmark = [pytest.mark.crash, pytest.mark.slow]

HEALS_WITHIN_S = 90.0
OWN = "own.refund"
TOOLS = {REFUND: RULES[REFUND], OWN: {**RULES[REFUND], "executor": "ledger", "dispatch_timeout_s": 15}}
WAITS_FOR_US = """
    SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))
"""


@dataclass
class Stack:
    """The ledger as people run it, one tenant, its provider, and the key of its agent."""

    ledger: RunningLedger
    provider: ProviderProcess
    key: str

    @classmethod
    def prepared(cls, ledger: RunningLedger, provider: ProviderProcess, files: Path) -> Stack:
        policy, config = files / "policy.json", files / "refunds.json"
        policy.write_text(json.dumps({"default": "refuse", "tools": TOOLS}))
        send = sending(f"{provider.url}/refunds", ARGS[REFUND])
        config.write_text(json.dumps({**configuration(provider.url, REFUND), "send": send}))
        stack = cls(ledger, provider, "")
        stack.told("create_tenant", "acme")
        stack.told("create_operator", "olga", "--tenant", "acme", "--role", "operator")
        stack.told("publish_policy", "--tenant", "acme", str(policy))
        stack.told(
            "add_provider", "--tenant", "acme", "refunds", "--adapter", "http", "--config", str(config)
        )
        made = stack.told(
            "create_agent_key", "--tenant", "acme", "--agent", "bot", "--owner", "olga", "--scope", "tool:*",
            "--json",
        )  # fmt: skip
        stack.key = json.loads(made)["key"]
        return stack

    def told(self, *command: str) -> str:
        ran = self.ledger.manage(*command)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def agent(self, operation_key: str, *, stop_at: str = "") -> Agent:
        agent = Agent(
            {
                "LEDGER_URL": self.ledger.address,
                "LEDGER_API_KEY": self.key,
                "PROVIDER_URL": self.provider.url,
                "OPERATION_KEY": operation_key,
                "TOOL": REFUND,
                "RESOURCE": "refunds",
                "ARGS": json.dumps(ARGS[REFUND]),
                "STOP_AT": stop_at,
            }
        )
        agent.says()
        return agent

    def left_to_the_ledger(self, operation_key: str) -> None:
        """An intent that the ledger's own sender sends."""
        api = Api(self.ledger.address, self.key)
        posted = api.post("/intents", operation_key=operation_key, tool=OWN, args=ARGS[REFUND])
        api.close()
        assert posted.status_code == 201, posted.text

    def operations(self, **which: str) -> list[dict[str, Any]]:
        """None where nobody answered."""
        api = Api(self.ledger.address, self.key)
        try:
            found = api.get("/operations", **which)
            return list(found.json()["operations"]) if found.status_code == 200 else []
        except httpx.TransportError:
            return []
        finally:
            api.close()

    def operation(self, operation_key: str) -> dict[str, Any]:
        return next(iter(self.operations(operation_key=operation_key)), {})

    def becomes(self, operation_key: str, state: str) -> dict[str, Any]:
        """Nobody does anything but the ledger itself."""
        wait_until(
            lambda: self.operation(operation_key).get("state") == state,
            within_s=HEALS_WITHIN_S,
            what=f"{state}: {self.operation(operation_key)}",
        )
        return self.operation(operation_key)

    def is_well(self) -> None:
        """Each operation was sent once and has had its one effect."""
        begun = len(self.operations())
        assert sorted(self.provider.all_effects().values()) == [1] * begun
        assert len(self.provider.requests("POST")) == begun
        self.told("fsck")
        self.told("verify_history")

    def kill(self, name: str) -> None:
        before = self.ledger.said().count(f"{name} started again")
        self.ledger.postmaster().kill() if name == "postgres" else self.ledger.child(name).kill()
        wait_until(
            lambda: self.ledger.said().count(f"{name} started again") > before,
            within_s=HEALS_WITHIN_S,
            what=f"{name} started again",
        )


@pytest.fixture(scope="module")
def stack(shared_ledger: RunningLedger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    files = tmp_path_factory.mktemp("stack")
    with ProviderProcess(files / "provider") as provider:
        yield Stack.prepared(shared_ledger, provider, files)


@pytest.mark.parametrize("hanging", ["send", "look_up"])
def test_the_broker_dies_while_a_task_is_at_work(stack: Stack, hanging: str) -> None:
    """Whether the task is stopped, goes on without its acknowledgement or is given away again: workers take
    up other work, nothing is sent a second time, and what the provider did is found out."""
    if hanging == "send":
        stack.provider.set_mode("accept_then_hang", on="send", times=1)
        stack.left_to_the_ledger(hanging)
    else:
        stack.provider.set_mode("hang", on="look_up", times=1)
        agent = stack.agent(hanging, stop_at="answered")
        agent.says()
        agent.kill()
    stack.provider.wait_for_hanging(timeout=HEALS_WITHIN_S)
    stack.kill("broker")
    stack.left_to_the_ledger(f"after:{hanging}")
    stack.becomes(f"after:{hanging}", "OUTCOME_CONFIRMED")
    stack.provider.release()
    found = stack.becomes(hanging, "OUTCOME_CONFIRMED")
    assert len(found["attempts"]) == 1
    stack.is_well()


def test_the_broker_dies_before_and_after_the_outcome(stack: Stack) -> None:
    # K3: the provider answered, the broker restarts, and the agent is no more.
    agent = stack.agent("k3", stop_at="answered")
    agent.says()
    stack.kill("broker")
    agent.kill()
    found = stack.becomes("k3", "OUTCOME_CONFIRMED")
    assert (found["attempts"][0]["confirmed_by"], len(found["attempts"])) == ("lookup", 1)

    # K4: the outcome is committed, the broker restarts.
    assert stack.agent("k4").end()["ended"] == "sent"
    before = stack.operation("k4")
    stack.kill("broker")
    assert stack.agent("k4").end()["ended"] == "done"
    assert stack.operation("k4") == before
    stack.is_well()


def test_the_database_dies_as_the_outcome_is_written(stack: Stack) -> None:
    """It is committed, or it is found."""
    agent = stack.agent("k5", stop_at="named")
    assert agent.says()["at"] == "named"
    operation = stack.operation("k5")
    said = _killed_as_it_writes(stack, operation["operation_id"], operation["attempts"][0]["attempt_id"])
    agent.kill()
    found = stack.becomes("k5", "OUTCOME_CONFIRMED")
    assert len(found["attempts"]) == 1
    assert (said, found["attempts"][0]["confirmed_by"]) in {(200, "agent"), (503, "lookup"), (0, "lookup")}
    stack.is_well()


def _killed_as_it_writes(stack: Stack, operation: str, attempt: str) -> int:
    """PostgreSQL is killed while the report's transaction waits for this row; how the report was answered."""
    with ThreadPoolExecutor(1) as pool:
        with suppress(psycopg.OperationalError), psycopg.connect(stack.ledger.home.database_url) as somebody:
            somebody.execute("SELECT 1 FROM ledger_operation WHERE id = %s FOR UPDATE", [operation])
            said = pool.submit(_report, stack, attempt)
            wait_until(lambda: _waits_for(somebody), within_s=20, what="the report waits")
            stack.ledger.postmaster().kill()
            somebody.execute("SELECT pg_sleep(60)")
        return said.result()


def _waits_for(somebody: psycopg.Connection) -> bool:
    return somebody.execute(WAITS_FOR_US).fetchone() != (0,)


def _report(stack: Stack, attempt: str) -> int:
    """One try, not repeated; 0 where nobody answered."""
    api = Api(stack.ledger.address, stack.key)
    try:
        return api.post(
            f"/attempts/{attempt}/outcome", worker_id="w1", outcome="succeeded", result_ref="re_000001"
        ).status_code
    except httpx.TransportError:
        return 0
    finally:
        api.close()
