"""Agents that begin operations at a steady pace: most they send themselves, every fourth the ledger sends."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import httpx

from ledger.client import Ledger
from tests.crash.world import ARGS, MAIL, REFUND, RESOURCES

AGENTS = 8


class Agents:
    """Threads that share one client of the ledger and one of the provider."""

    def __init__(self, address: str, key_text: str, provider_url: str) -> None:
        self._ledger = Ledger(address, key_text)
        self._provider = httpx.Client(base_url=provider_url, trust_env=False, timeout=60)

    def work(self, name: str, operations: int, *, per_s: float) -> None:
        """Returns when the last one is confirmed, or left to the ledger. Raises where one was not."""
        began = time.monotonic()
        with self._provider, ThreadPoolExecutor(AGENTS) as agents:
            done = []
            for number in range(operations):
                time.sleep(max(0.0, began + number / per_s - time.monotonic()))
                begin = self._left_to_the_ledger if number % 4 == 3 else self._sent
                done.append(agents.submit(begin, f"{name}:{number}"))
            for one in done:
                one.result()

    def _left_to_the_ledger(self, key: str) -> None:
        self._ledger.post_intent(key, tool=REFUND, args=ARGS[REFUND])

    def _sent(self, key: str) -> None:
        with self._ledger.operation(key, tool=MAIL, args=ARGS[MAIL]) as op:
            body = {**op.args, "metadata": {"correlation_id": op.correlation_id}}
            answer = self._provider.post(
                f"/{RESOURCES[MAIL]}", json=body, headers={"Idempotency-Key": op.idempotency_key}
            )
            op.confirm(result_ref=str(answer.raise_for_status().json()["id"]))
