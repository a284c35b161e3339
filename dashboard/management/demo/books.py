"""The demo provider's own record of every effect it had, durable before anybody is told about it.

One file of JSON lines in the provider's own directory. An effect is flushed to the disk before it is
answered, so a provider that is killed and started again knows exactly what it did.
"""

import json
import os
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Thing = dict[str, Any]

PREFIXES = {"refunds": "re", "messages": "msg", "tickets": "tkt", "deployments": "dep"}
DONE_WORDS = {"refunds": "succeeded", "messages": "sent", "tickets": "open", "deployments": "live"}
CANARY_ID = "canary"
SLOW_METHOD, SLOW_WORD = "bank transfer", "pending"
"""A refund by this method stays in this state until the bank settles it."""


class KeyReuseError(Exception):
    """The idempotency key was seen before, with another body."""


def correlation_of(thing: Mapping[str, Any]) -> str:
    """The correlation id a body or a stored thing carries; empty where there is none."""
    metadata = thing.get("metadata")
    found = metadata.get("correlation_id") if isinstance(metadata, Mapping) else None
    return str(found or thing.get("correlation_id") or "")


def first_status(resource: str, body: Mapping[str, Any]) -> str:
    """What a new thing's status is, unless its body names one."""
    slow = resource == "refunds" and body.get("method") == SLOW_METHOD
    return SLOW_WORD if slow else DONE_WORDS[resource]


class Books:
    """What this provider did. Safe for use by several threads of one process."""

    def __init__(self, directory: Path, *, idempotent: frozenset[str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / "effects.jsonl"
        self._idempotent = idempotent
        self._lock = threading.Lock()
        self._things: dict[str, dict[str, Thing]] = {name: {} for name in PREFIXES}
        self._by_key: dict[tuple[str, str], tuple[str, Thing]] = {}
        for resource in PREFIXES:
            self._things[resource][CANARY_ID] = {"id": CANARY_ID, "status": DONE_WORDS[resource]}
        self._read_what_was_done()

    def create(self, resource: str, body: Thing, *, key: str) -> tuple[Thing, bool]:
        """Have the effect, or find the one this key had. Returns the thing and whether it is new."""
        with self._lock:
            earlier = self._by_key.get((resource, key)) if key and resource in self._idempotent else None
            if earlier is not None:
                if earlier[1] != body:
                    raise KeyReuseError
                return self._things[resource][earlier[0]], False
            thing_id = f"{PREFIXES[resource]}_{len(self._things[resource]):06d}"
            thing = {"status": first_status(resource, body), **body, "id": thing_id}
            self._append({"resource": resource, "key": key, "body": body, "thing": thing})
            return thing, True

    def change_status(self, resource: str, thing_id: str, status: str) -> Thing | None:
        """Move a thing on, as a provider does of its own accord (a refund reversed, a mail bounced)."""
        with self._lock:
            thing = self._things[resource].get(thing_id)
            if thing is None:
                return None
            self._append({"resource": resource, "changed": thing_id, "status": status})
            return self._things[resource][thing_id]

    def one(self, resource: str, thing_id: str) -> Thing | None:
        with self._lock:
            return self._things[resource].get(thing_id)

    def matching(self, resource: str, correlation_id: str | None) -> list[Thing]:
        """In the order they were made; all but the canary where no correlation id is given."""
        with self._lock:
            made = [thing for thing in self._things[resource].values() if thing["id"] != CANARY_ID]
        return [thing for thing in made if correlation_id in {None, correlation_of(thing)}]

    def effects(self) -> dict[str, Any]:
        """How often something was really done: in all, per resource and per correlation id."""
        made = {resource: self.matching(resource, None) for resource in PREFIXES}
        counted = Counter(correlation_of(thing) for things in made.values() for thing in things)
        return {
            "total": sum(counted.values()),
            "by_resource": {resource: len(things) for resource, things in made.items()},
            "by_correlation_id": dict(counted),
        }

    def _append(self, line: Thing) -> None:
        with self._path.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._apply(line)

    def _apply(self, line: Thing) -> None:
        things = self._things[line["resource"]]
        if "changed" in line:
            things[line["changed"]] = {**things[line["changed"]], "status": line["status"]}
            return
        things[line["thing"]["id"]] = line["thing"]
        if line["key"]:
            self._by_key.setdefault((line["resource"], line["key"]), (line["thing"]["id"], line["body"]))

    def _read_what_was_done(self) -> None:
        if not self._path.exists():
            return
        whole, _, torn = self._path.read_bytes().rpartition(b"\n")
        for line in whole.splitlines():
            self._apply(json.loads(line))
        if torn:  # killed inside the write: never answered, so it never counted
            os.truncate(self._path, len(whole) + 1 if whole else 0)
