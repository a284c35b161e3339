"""The demo's wire to its provider. Sending and reading are two steps, because agents die in between."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 10.0


class ProviderSilent(Exception):
    """No whole answer came. Whether the request had its effect is not known."""


@dataclass(frozen=True)
class Sent:
    """A request that is out; its answer has not been read."""

    wire: socket.socket

    def answer(self) -> tuple[int, dict[str, Any]]:
        """Status and JSON object. Raises ProviderSilent."""
        with self.wire:
            try:
                received = b"".join(iter(lambda: self.wire.recv(65_536), b""))
                head, _, body = received.partition(b"\r\n\r\n")
                return int(head.split()[1]), json.loads(body)
            except (OSError, ValueError, IndexError) as error:
                raise ProviderSilent(type(error).__name__) from error


def send(url: str, method: str, target: str, body: object = None, *, key: str = "") -> Sent:
    """Send a request and leave its answer on the wire. Raises ProviderSilent."""
    at = urlsplit(url)
    content = b"" if body is None else json.dumps(body).encode()
    lines = [
        f"{method} {target} HTTP/1.1",
        f"Host: {at.netloc}",
        "Connection: close",
        f"Content-Length: {len(content)}",
        *([f"Idempotency-Key: {key}"] if key else []),
    ]
    try:
        wire = socket.create_connection((at.hostname or "", at.port or 80), timeout=TIMEOUT_S)
        wire.sendall("\r\n".join([*lines, "", ""]).encode() + content)
    except OSError as error:
        raise ProviderSilent(type(error).__name__) from error
    return Sent(wire)


def ask(url: str, method: str, target: str, body: object = None) -> tuple[int, dict[str, Any]]:
    """Send, and read the answer. Raises ProviderSilent."""
    return send(url, method, target, body).answer()
