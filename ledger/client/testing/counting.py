"""A provider that counts: a process of its own with its own disk, so that its count survives every kill."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from ledger.client.testing.books import Effect, read_effects
from ledger.client.testing.children import environment_of_children

LOOKS_EVERY_S = 0.01
READY_WITHIN_S = 20.0


class CountingProvider:
    """Every POST to it, to any path but those that begin with `/_`, is one effect, answered 201 with its id.

    It reads the header `Idempotency-Key`, and the correlation id from the body's `correlation_id` or
    `metadata.correlation_id`. `honours_keys`: a repeated key gets the first answer again and has no second
    effect; without it a blind repetition counts twice. `GET /effects?correlation_id=…` lists, so that the
    ledger can look up there (docs/client.md shows how).
    """

    def __init__(self, directory: str | os.PathLike[str], *, honours_keys: bool = False) -> None:
        self._books = Path(directory) / "effects.jsonl"
        self._honours_keys = honours_keys
        self._process: subprocess.Popen[str] | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, or begin again on the same books and the same port."""
        self._books.parent.mkdir(parents=True, exist_ok=True)
        options = [str(self._books), str(self._port), *(["honours_keys"] if self._honours_keys else [])]
        command = [sys.executable, "-m", "ledger.client.testing.provider", *options]
        self._process = subprocess.Popen(
            command, env=environment_of_children(), stdout=subprocess.PIPE, text=True
        )
        said = self._process.stdout.readline() if self._process.stdout else ""
        if not said.strip().isdigit():
            raise RuntimeError("the counting provider did not start")
        self._port = int(said)

    def stop(self) -> None:
        """Kill it. What it has counted stays."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def all_effects(self) -> list[Effect]:
        """Everything that happened, oldest first, read from its disk."""
        return read_effects(self._books)

    def effects(self, correlation_id: str | None = None) -> int:
        """How often something happened, for one operation or in all."""
        return sum(1 for effect in self.all_effects() if correlation_id in {None, effect.correlation_id})

    def most_for_one_operation(self) -> int:
        """The greatest number of effects with one correlation id: more than 1 is a double effect."""
        return max(Counter(effect.correlation_id for effect in self.all_effects()).values(), default=0)

    @contextmanager
    def holding_answers(self) -> Iterator[None]:
        """Meanwhile every effect happens, and its answer waits until the end of the block."""
        self._tell("/_hold")
        try:
            yield
        finally:
            self._tell("/_release")

    def wait_until_held(self, agent: "subprocess.Popen[Any]", timeout: float) -> None:
        """Until an answer waits, or the agent has ended without sending. TimeoutError after `timeout` s."""
        give_up_at = time.monotonic() + timeout
        while not self._ask("/_held")["held"] and agent.poll() is None:
            if time.monotonic() > give_up_at:
                raise TimeoutError("the agent did not send")
            time.sleep(LOOKS_EVERY_S)

    def _tell(self, path: str) -> None:
        httpx.post(self.url + path, trust_env=False, timeout=READY_WITHIN_S).raise_for_status()

    def _ask(self, path: str) -> dict[str, Any]:
        answer = httpx.get(self.url + path, trust_env=False, timeout=READY_WITHIN_S)
        said: dict[str, Any] = json.loads(answer.content)
        return said


__all__ = ["CountingProvider", "Effect"]
