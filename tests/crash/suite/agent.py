"""The agent child: the real client, then a real request to the provider; it writes down what it was told.

What the ledger acknowledged is in the actor's own journal before the actor goes on; the verdict asks whether
it is still true.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ledger.client import DefiniteFailure, Ledger, LedgerError
from ledger.client.answers import Answer
from ledger.client.calls import Calls
from ledger.client.operation import Operation
from ledger.client.twins import twin
from tests.crash.suite.children import Line
from tests.crash.suite.injection import Injector

ANSWER_WITHIN_S = 0.4
CALL_WITHIN_S = 1.5
RUN = "the run"


@dataclass
class Journal:
    """Acknowledgements of one schedule, one line of JSON each."""

    path: Path

    def write(self, **said: Any) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said, default=str) + "\n")


@dataclass(frozen=True)
class Task:
    """One operation as the agent is told to do it."""

    ledger_url: str
    key: str
    provider: tuple[str, int]
    operation_key: str
    tool: str
    args: dict[str, Any]
    state_dir: str
    heartbeat: bool
    run_calls: int

    @property
    def step_of_run(self) -> dict[str, str]:
        return {"run": RUN, "step": self.operation_key} if self.run_calls else {}


_AT_INTENT: list[Callable[[Answer], None]] = []
"""Who is told of the next answer to an intent; the client itself does not stop between the two calls."""


def _watch_intents() -> None:
    post = Calls.post_intent

    async def posted(self: Calls, *args: Any, **kwargs: Any) -> Answer:
        told = await post(self, *args, **kwargs)
        while _AT_INTENT:
            _AT_INTENT.pop()(told)
        return told

    Calls.post_intent = twin(posted)  # type: ignore[method-assign]


def work(line: Line, injector: Injector, life_id: str) -> None:
    """Do what the lane asks until killed."""
    _watch_intents()

    def answer(command: dict[str, Any]) -> Any:
        if "faults" in command:
            injector.obey(command)
            return None
        journal = Journal(Path(command["journal"]))
        if command["do"] == "cancel":
            return _cancel(command, journal)
        task = Task(**{**command["task"], "provider": tuple(command["task"]["provider"])})
        life = _Life(task, journal, injector, life_id)
        return life.post_variant() if command["do"] == "variant" else life.live()

    line.answer_forever(answer)


@lru_cache(maxsize=4)
def _ledger(url: str, key: str, worker_id: str, state_dir: str) -> Ledger:
    """One client, with its connection, for as long as the process works for one tenant."""
    return Ledger(url, key, worker_id, timeout=CALL_WITHIN_S, tries=3, state_dir=state_dir or None)


def _cancel(command: dict[str, Any], journal: Journal) -> str:
    ledger = _ledger(command["url"], command["key"], "canceller", "")
    try:
        found = ledger.find_operations(operation_key=command["operation_key"])["operations"]
        for operation in found:
            ledger.cancel(operation["operation_id"], reason="no longer wanted")
            journal.write(said="cancelled", operation=operation["operation_id"])
    except LedgerError as error:
        return f"cancel {type(error).__name__} {error.about.slug}"
    return f"cancelled {len(found)}"


@dataclass
class _Life:
    """One try of one process at one operation."""

    task: Task
    journal: Journal
    injector: Injector
    life_id: str

    def live(self) -> str:
        """How it ended: sent, done, or the name of the error."""
        try:
            return self._live()
        except LedgerError as error:
            return f"{type(error).__name__} {error.about.slug or error.about.reason}"
        except (DefiniteFailure, OSError, ValueError) as error:
            return f"unsent {type(error).__name__}"

    def _live(self) -> str:
        task, ended = self.task, "done"
        ledger = _ledger(task.ledger_url, task.key, self.life_id, task.state_dir)
        if task.run_calls:
            ledger.put_run(RUN, limits={"tool_calls": task.run_calls})
        _AT_INTENT.append(self.recorded)
        with ledger.operation(task.operation_key, tool=task.tool, args=task.args, **task.step_of_run) as op:
            if not op.done:
                ended = self._send(op)
        return ended

    def recorded(self, told: Answer) -> None:
        """The intent was answered; leave has not been asked for."""
        self.journal.write(said="intent", attempt=told.attempt_id, args_hash=told.args_hash)
        self.injector.reached("agent.recorded")

    def post_variant(self) -> str:
        """The same key with other arguments: a mistake that a person will see."""
        task = self.task
        ledger = _ledger(task.ledger_url, task.key, self.life_id, "")
        try:
            ledger.post_intent(task.operation_key, tool=task.tool, args=task.args)
        except LedgerError as error:
            return f"variant {type(error).__name__} {error.about.slug}"
        return "variant posted"

    def _send(self, op: Operation) -> str:
        self.journal.write(said="leave", attempt=op.attempt_id)
        self.injector.reached("agent.leave")
        if self.task.heartbeat:
            op.heartbeat()
        body = {**op.args, "metadata": {"correlation_id": op.correlation_id}}
        with self._request(body, op) as wire:
            self.injector.reached("agent.sent")
            reference = _reference_in(wire)
        self.injector.reached("agent.answered")
        self._report(op, reference)
        return "sent"

    def _report(self, op: Operation, reference: str) -> None:
        op.provider_request(reference)
        self.journal.write(said="named", attempt=op.attempt_id, reference=reference)
        self.injector.reached("agent.named")
        op.confirm(result_ref=reference)
        said = {"said": "kept"} if op.kept else {"said": "outcome", "state": op.state}
        self.journal.write(**said, attempt=op.attempt_id, reference=reference)
        self.injector.reached("agent.reported")

    def _request(self, body: dict[str, Any], op: Operation) -> socket.socket:
        content = json.dumps(body).encode()
        head = (
            "POST /things HTTP/1.1\r\nHost: provider\r\nConnection: close\r\n"
            f"Content-Length: {len(content)}\r\nIdempotency-Key: {op.idempotency_key}\r\n"
            f"X-Sent-By: {self.life_id}\r\nX-Attempt: {op.attempt_id}\r\n\r\n"
        )
        wire = socket.create_connection(self.task.provider, timeout=ANSWER_WITHIN_S)
        wire.sendall(head.encode() + content)
        return wire


def _reference_in(wire: socket.socket) -> str:
    """The provider's reference. Raises DefiniteFailure (a definite no), OSError or ValueError (no answer)."""
    received = b""
    while part := wire.recv(65_536):
        received += part
        head, found, body = received.partition(b"\r\n\r\n")
        if found and len(body) >= _length_in(head):
            break
    head, _, body = received.partition(b"\r\n\r\n")
    status = int(([*head.split(), b"", b"0"])[1])
    if status == 422:
        raise DefiniteFailure("declined", "the provider declined")
    if status not in {200, 201}:
        raise ConnectionError(f"it answered {status}")
    thing = json.loads(body)
    if thing["status"] != "succeeded":
        raise ConnectionError(f"it is {thing['status']}")
    return str(thing["id"])


def _length_in(head: bytes) -> int:
    lines = [line.split(b":") for line in head.lower().split(b"\r\n")]
    return next((int(line[1]) for line in lines if line[0] == b"content-length"), 0)
