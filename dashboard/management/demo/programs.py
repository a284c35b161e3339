"""The demo's other processes, as this one holds them. They end when it does: their input closes."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from dashboard.management.demo import wire
from dashboard.management.demo.jobs import Job, Reply

CHECKOUT = Path(__file__).resolve().parents[3]
ANSWERS_WITHIN_S = 60.0
STORES_WITHIN_S = 5.0


class ProgramFailed(Exception):
    """A process of the demo did not start or did not answer."""


class Program:
    """A Python program that is spoken to in lines of JSON."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._read = b""

    def start(self) -> None:
        self._read = b""
        self._process = subprocess.Popen(
            self._command,
            cwd=CHECKOUT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ensure_running(self) -> bool:
        """Start it where it has ended or not begun. Returns whether it was."""
        if self.is_running:
            return False
        self.kill()
        self.start()
        return True

    def tell(self, document: Mapping[str, Any]) -> None:
        """Give it one line. Raises ProgramFailed."""
        to_it, _ = self._pipes()
        try:
            to_it.write(json.dumps(document).encode() + b"\n")
            to_it.flush()
        except BrokenPipeError as error:
            raise ProgramFailed(f"{self._command[2]} is gone") from error

    def hear(self) -> dict[str, Any]:
        """Its next line. Raises ProgramFailed where it ends, or says nothing for a minute."""
        give_up_at = time.monotonic() + ANSWERS_WITHIN_S
        while b"\n" not in self._read:
            self._read += self._some_bytes(give_up_at - time.monotonic())
        line, _, self._read = self._read.partition(b"\n")
        document: dict[str, Any] = json.loads(line)
        return document

    def kill(self) -> None:
        """SIGKILL: it gets no say."""
        if self._process is None:
            return
        pipes = self._pipes()
        self._process.kill()
        self._process.wait()
        self._process = None
        for pipe in pipes:
            with contextlib.suppress(BrokenPipeError):  # a line it never read
                pipe.close()

    def _some_bytes(self, within_s: float) -> bytes:
        _, from_it = self._pipes()
        with selectors.DefaultSelector() as selector:
            selector.register(from_it, selectors.EVENT_READ)
            received = os.read(from_it.fileno(), 65_536) if selector.select(max(within_s, 0)) else b""
        if not received:
            raise ProgramFailed(f"{self._command[2]} gave no answer")
        return received

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        """To it, and from it."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise ProgramFailed(f"{self._command[2]} is not running")
        return process.stdin, process.stdout


class Agent(Program):
    """One tenant's agent: one life after the other, each a process and a worker of its own."""

    def __init__(self, name: str, *, ledger_url: str, api_key: str, provider_url: str) -> None:
        super().__init__("dashboard.management.demo.agent", "--provider", provider_url)
        self._name = name
        self._environment |= {"LEDGER_URL": ledger_url, "LEDGER_API_KEY": api_key}

    def start(self) -> None:
        self._environment["LEDGER_WORKER_ID"] = f"{self._name}-{secrets.token_hex(4)}"
        super().start()

    def ask(self, job: Job) -> Reply:
        """Let it have a go at a job, in a new life where the last one is over. Raises ProgramFailed."""
        self.ensure_running()
        self.tell(job.as_json())
        return Reply.from_json(self.hear())


class Bank(Program):
    """The provider's process: refunds, messages, tickets, deployments, counted on its own disk."""

    def __init__(self, directory: Path, *, port: int) -> None:
        super().__init__(
            "dashboard.management.demo.provider", "--dir", str(directory), "--until-stdin-closes"
        )
        self._without_port = self._command
        self.url = ""
        self.port = port

    def start(self) -> None:
        """Start at its port (0: a free one), and return once it listens. Raises ProgramFailed."""
        self._command = [*self._without_port, "--port", str(self.port)]
        super().start()
        said = self.hear()
        self.url, self.port = said["url"], said["port"]

    def thing_of(self, resource: str, correlation_id: str) -> dict[str, Any] | None:
        """What it stored for this operation, if it does so within a few seconds."""
        give_up_at = time.monotonic() + STORES_WITHIN_S
        while time.monotonic() < give_up_at:
            _, found = wire.ask(self.url, "GET", f"/{resource}?correlation_id={correlation_id}")
            if found["data"]:
                thing: dict[str, Any] = found["data"][0]
                return thing
            time.sleep(0.02)
        return None

    def settle(self, refund_id: str) -> None:
        """The slow transfer arrives."""
        wire.ask(self.url, "PATCH", f"/refunds/{refund_id}", {"status": "succeeded"})


class Shop(Program):
    """The consumer's process: told of results, with its own books."""

    def __init__(self, directory: Path, *, port: int) -> None:
        super().__init__("dashboard.management.demo.shop", "--dir", str(directory), "--port", str(port))
        self.url = ""
        self.port = port

    def start(self) -> None:
        """Return once it listens. Raises ProgramFailed."""
        super().start()
        said = self.hear()
        self.url, self.port = said["url"], said["port"]

    def use(self, secret: str) -> None:
        self.tell({"secret": secret})


def start_shop(directory: Path, *, wanted_port: int) -> Shop:
    """The shop at the port it had last time, or at a free one where somebody else has that now."""
    shop = Shop(directory, port=wanted_port)
    try:
        shop.start()
    except ProgramFailed:
        shop.kill()
        shop = Shop(directory, port=0)
        shop.start()
    return shop


def start_bank(directory: Path, *, wanted_port: int) -> Bank:
    """The provider at the port it had last time, or at a free one where somebody else has that now."""
    bank = Bank(directory, port=wanted_port)
    try:
        bank.start()
    except ProgramFailed:
        bank.kill()
        bank = Bank(directory, port=0)
        bank.start()
    return bank
