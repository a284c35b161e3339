"""R117: the broker restarts while tasks run, and the database is away just when the outcome is written.

Kind: an acknowledgement that is lost, taken for work that was not done.

The real stack of processes, with a real agent; so what is asserted after every other scenario is asked of
this ledger by its own commands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.crash.world import ARGS, REFUND, RULES, Agent, configuration
from tests.support.api import Api
from tests.support.processes import RunningLedger, wait_until
from tests.support.provider import ProviderProcess

pytestmark = [pytest.mark.crash, pytest.mark.slow]

HEALS_WITHIN_S = 90.0


@dataclass
class Stack:
    """The ledger as people run it, one tenant, its provider, and the key of its agent."""

    ledger: RunningLedger
    provider: ProviderProcess
    key: str

    @classmethod
    def prepared(cls, ledger: RunningLedger, provider: ProviderProcess, files: Path) -> Stack:
        policy, config = files / "policy.json", files / "refunds.json"
        policy.write_text(json.dumps({"default": "refuse", "tools": {REFUND: RULES[REFUND]}}))
        config.write_text(json.dumps(configuration(provider.url, REFUND)))
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

    def operation(self, operation_key: str) -> dict[str, Any]:
        api = Api(self.ledger.address, self.key)
        try:
            found = api.get("/operations", operation_key=operation_key)
            operations = found.json()["operations"] if found.status_code == 200 else []
            return operations[0] if operations else {}
        except httpx.TransportError:
            return {}
        finally:
            api.close()

    def becomes(self, operation_key: str, state: str) -> dict[str, Any]:
        """Nobody does anything but the ledger itself."""
        wait_until(
            lambda: self.operation(operation_key).get("state") == state,
            within_s=HEALS_WITHIN_S,
            what=f"{state}: {self.operation(operation_key)}",
        )
        return self.operation(operation_key)

    def is_well(self, *, effects: int) -> None:
        assert self.provider.total_effects() == effects
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


@pytest.fixture
def stack(running_ledger: RunningLedger, tmp_path: Path) -> Iterator[Stack]:
    with ProviderProcess(tmp_path / "provider") as provider:
        yield Stack.prepared(running_ledger, provider, tmp_path)


def test_the_broker_dies_before_and_after_the_outcome_and_the_database_as_it_is_written(stack: Stack) -> None:
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

    # The database is gone as the outcome is written: it is committed, or it is found.
    agent = stack.agent("k5", stop_at="named")
    reference = agent.says()
    assert reference["at"] == "named"
    attempt = stack.operation("k5")["attempts"][0]["attempt_id"]
    stack.ledger.postmaster().kill()
    said = _report(stack, attempt)
    assert said in (0, 200, 503)
    agent.kill()
    found = stack.becomes("k5", "OUTCOME_CONFIRMED")
    assert len(found["attempts"]) == 1
    assert said == 200 or found["attempts"][0]["confirmed_by"] == "lookup"
    stack.is_well(effects=3)


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
