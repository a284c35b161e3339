"""Start an agent as a process of its own, and kill it where it is told to die."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from tempfile import TemporaryFile

from ledger.client.testing.boundaries import Boundary
from ledger.client.testing.children import environment_of_children
from ledger.client.testing.counting import CountingProvider

PREPARED = ("-m", "ledger.client.testing")


@dataclass(frozen=True)
class Ended:
    """How the agent's process ended, and what it said until then."""

    killed: bool
    exit_code: int  # negative: the signal
    stdout: str
    stderr: str


def run_agent(
    program: str | os.PathLike[str],
    *arguments: str,
    kill_at: Boundary | None = None,
    provider: CountingProvider | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> Ended:
    """Run a Python program, under `env` besides this process's environment, until it ends or is killed.

    `provider` is needed for WHILE_SENDING; its address is in the program's PROVIDER_URL. An agent that never
    arrives at the boundary ends as it does by itself: look at `killed`. After `timeout` seconds it is killed
    and TimeoutError or TimeoutExpired raised.
    """
    holding = provider if kill_at is Boundary.WHILE_SENDING else None
    if kill_at is Boundary.WHILE_SENDING and holding is None:
        raise ValueError("WHILE_SENDING needs the provider that the agent sends to")
    told = {"PROVIDER_URL": provider.url} if provider else {}
    command = [sys.executable, *_prepared(kill_at), os.fspath(program), *arguments]
    environment = environment_of_children({**told, **(env or {})})
    with TemporaryFile("w+") as stdout, TemporaryFile("w+") as stderr:
        with holding.holding_answers() if holding else nullcontext():
            process = subprocess.Popen(command, env=environment, stdout=stdout, stderr=stderr)
            _wait_and_kill(process, holding, timeout)
        stdout.seek(0)
        stderr.seek(0)
        killed = process.returncode == -signal.SIGKILL
        return Ended(killed, process.returncode, stdout.read(), stderr.read())


def _wait_and_kill(
    process: "subprocess.Popen[bytes]", holding: CountingProvider | None, timeout: float
) -> None:
    """Until it ends by itself, or what it sent has happened and is not answered."""
    try:
        if holding is None:
            process.wait(timeout)
        else:
            holding.wait_until_held(process, timeout)
    finally:
        process.kill()
        process.wait()


def _prepared(kill_at: Boundary | None) -> tuple[str, ...]:
    return () if kill_at in {None, Boundary.WHILE_SENDING} else (*PREPARED, str(kill_at))
