"""What the demo remembers between starts: secrets in LEDGER_HOME/demo.json, its work in LEDGER_HOME/demo/."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboard.management.demo.jobs import Job

SERIES_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"


class DemoRunsAlready(Exception):
    """Another demo works on the same LEDGER_HOME."""


@dataclass
class Secrets:
    """Passwords and keys, made once and shown at each start. The file is for this user's eyes alone."""

    path: Path
    passwords: dict[str, str] = field(default_factory=dict)
    api_keys: dict[str, str] = field(default_factory=dict)
    provider_port: int = 0
    shop_port: int = 0
    shop_secret: str = ""

    @classmethod
    def at(cls, path: Path) -> Secrets:
        return cls(path, **_read(path))

    def password_of(self, username: str) -> str:
        """The password of this person; a new one is easy to type and has 48 random bits."""
        if username not in self.passwords:
            self.passwords[username] = "-".join(secrets.token_hex(2) for _ in range(3))
            self.save()
        return self.passwords[username]

    def save(self) -> None:
        kept = ("passwords", "api_keys", "provider_port", "shop_port", "shop_secret")
        _write(self.path, {name: getattr(self, name) for name in kept})


@dataclass
class Work:
    """The agents' to-do list. `number` only grows within a series, so every operation key is new."""

    path: Path
    series: str = ""
    number: int = 0
    opened: int = 0
    """How many acts of the opening have been played."""
    open: list[Job] = field(default_factory=list)
    slow_transfers: list[str] = field(default_factory=list)
    """What the bank has yet to settle, oldest first."""

    @classmethod
    def at(cls, path: Path) -> Work:
        document = _read(path)
        jobs = [Job.from_json(job) for job in document.pop("open", [])]
        return cls(path, open=jobs, **document)

    def begin_series(self) -> None:
        """Start again from the opening, under keys that no earlier series can have used."""
        drawn = secrets.choice(SERIES_LETTERS) + secrets.choice(SERIES_LETTERS) + str(secrets.randbelow(10))
        self.series, self.number, self.opened = drawn, 0, 0
        self.save()

    def next_number(self) -> int:
        """Written down before it is used: a number is never used twice, wherever this process dies."""
        self.number += 1
        self.save()
        return self.number

    def save(self) -> None:
        kept = ("series", "number", "opened", "slow_transfers")
        jobs = [job.as_json() for job in self.open]
        _write(self.path, {**{name: getattr(self, name) for name in kept}, "open": jobs})


@contextlib.contextmanager
def only_demo(directory: Path) -> Iterator[None]:
    """Hold the demo's directory for one process; created where it is not there."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (directory / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoRunsAlready(
                f"A demo already runs on {directory.parent}: stop that one first."
            ) from None
        yield


def _read(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return document


def _write(path: Path, document: dict[str, Any]) -> None:
    """All of it or nothing, and readable by this user alone from the first byte."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(json.dumps(document, indent=1))
    draft.replace(path)
