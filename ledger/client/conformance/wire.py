"""The consumer's endpoint, and its process where this run may start and kill it."""

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from tempfile import TemporaryFile
from urllib.parse import urlsplit

import httpx

NO_ANSWER = 0
LOOK_EVERY_S = 0.02


class ConsumerAway(Exception):
    """Nothing can be checked; the message says what to mend."""


class Wire:
    """Posts to the endpoint: no redirects, no proxies, like the ledger."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self.url = url
        self.took_s: list[float] = []
        limits = httpx.Limits(max_keepalive_connections=0)  # whoever is killed keeps no half-dead connection
        self._client = httpx.Client(timeout=timeout_s, trust_env=False, limits=limits)

    def post(self, headers: Mapping[str, str], body: bytes) -> int:
        """The status; NO_ANSWER where none came."""
        began_s = time.monotonic()
        try:
            status = self._client.post(self.url, headers=dict(headers), content=body).status_code
        except httpx.HTTPError:
            return NO_ANSWER
        self.took_s.append(time.monotonic() - began_s)
        return status

    def close(self) -> None:
        self._client.close()


class Process:
    """The consumer, started by a command in a session of its own; SIGKILL goes to all of it."""

    def __init__(self, command: str, url: str, *, ready_s: float) -> None:
        self._command = shlex.split(command)
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        self._where = f"{self._address[0]}:{self._address[1]}"
        self._ready_s = ready_s
        self._process: subprocess.Popen[bytes] | None = None
        self._said = TemporaryFile()  # noqa: SIM115 (open as long as the processes)
        self.killed = 0

    def start(self) -> None:
        """Until it takes connections. Raises ConsumerAway."""
        if reachable(self._address):
            raise ConsumerAway(f"something answers at {self._where} before it was started: stop it first")
        try:
            self._process = subprocess.Popen(
                self._command, start_new_session=True, stdout=self._said, stderr=subprocess.STDOUT
            )
        except OSError as why:
            raise ConsumerAway(f"it cannot be started: {why}") from None
        give_up_at = time.monotonic() + self._ready_s
        while not reachable(self._address):
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                raise ConsumerAway(f"it does not take connections at {self._where}; it said: {self._tail()}")
            time.sleep(LOOK_EVERY_S)

    def kill(self) -> None:
        """At once, and until nobody takes connections any more."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        self.killed += 1
        give_up_at = time.monotonic() + self._ready_s
        while reachable(self._address) and time.monotonic() < give_up_at:
            time.sleep(LOOK_EVERY_S)

    def close(self) -> None:
        self.kill()
        self._said.close()

    def _tail(self) -> str:
        self._said.seek(0)
        return self._said.read()[-2_000:].decode(errors="replace").strip() or "nothing"


def reachable(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=2).close()
    except OSError:
        return False
    return True
