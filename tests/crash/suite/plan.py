"""A plan: all that is meant to happen in one schedule, as a value that outlives its generator.

Times are milliseconds from the start of the chaos. What the machine does in between is not planned: the same
plan is the same set of blows, not the same interleaving.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

VERSION = 1


@dataclass(frozen=True)
class Fault:
    """Strike at the `nth` passage of this point; a stopped process is resumed after `hold_ms`."""

    point: str
    nth: int
    kind: str
    hold_ms: int = 0


@dataclass(frozen=True)
class PlannedOperation:
    """One operation: its rule, and how its provider answers each send and each look-up, one after the other.

    `keys_s`: how long its provider remembers a key; 0: it honours none. `late_provider`: the ledger's own
    configuration of it is missing at first. `heartbeat`: its agent asks for more time before it sends.
    """

    rule: Mapping[str, Any]
    keys_s: float
    sends: tuple[str, ...] = ()
    look_ups: tuple[str, ...] = ()
    starts_ms: int = 0
    late_provider: bool = False
    heartbeat: bool = False


@dataclass(frozen=True)
class PlannedDestination:
    """One consumer that hears of every settlement, and how it treats each try, one word after the other; then
    it is honest. `ack`: response, or explicit."""

    ack: str = "response"
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Message:
    """A hint to a worker to run a pass. `delivery`: once, twice (both workers at once), late, lost."""

    at_ms: int
    task: str
    worker: str
    delivery: str = "once"


HAPPENINGS = (
    *("cancel", "revoke", "narrow", "publish", "suspend", "variant", "rival", "wipe", "press"),
    *("letter", "add_provider"),
)


@dataclass(frozen=True)
class Happening:
    """From outside, `what` of `HAPPENINGS`; `letter` is a person's press about a delivery, `rival` another
    process that does the same operation, `variant` one that does it with other arguments."""

    at_ms: int
    what: str
    operation: int = 0
    detail: str = ""


@dataclass(frozen=True)
class Plan:
    """One schedule. `aim` is the point it was made for. `insists`: what is done again and again until the
    first fault has struck, at most three times as long as the chaos usually takes: a task of the workers,
    `cancel`, `press:<kind>`, or `letter:<kind>`. `run_calls`: all operations belong to one run, which may
    make so many tool calls; 0: to none. `hints_lost`: nobody tells the deliverer that something
    has settled."""

    seed: int
    aim: str
    operations: tuple[PlannedOperation, ...]
    faults: tuple[Fault, ...]
    messages: tuple[Message, ...]
    happenings: tuple[Happening, ...] = ()
    insists: str = ""
    state_dir: bool = False
    chaos_ms: int = 600
    run_calls: int = 0
    destinations: tuple[PlannedDestination, ...] = ()
    ack_deadline_s: float = 0.2
    hints_lost: bool = False
    version: int = VERSION
    note: str = field(default="", compare=False)

    @property
    def blow(self) -> int:
        """Which of the faults the plan is about: the first at its aim."""
        return next((n for n, fault in enumerate(self.faults) if fault.point == self.aim), 0)

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=1)


def plan_from(text: str) -> Plan:
    """A plan as `as_json` wrote it. Raises KeyError, TypeError or ValueError for what is none."""
    document = json.loads(text)
    if document["version"] != VERSION:
        raise ValueError(f"a plan of version {document['version']}; this suite reads {VERSION}")
    parts: dict[str, tuple[type, Any]] = {
        "operations": (PlannedOperation, _operation),
        "faults": (Fault, dict),
        "messages": (Message, dict),
        "happenings": (Happening, dict),
        "destinations": (PlannedDestination, _destination),
    }
    for name, (kind, read) in parts.items():
        document[name] = tuple(kind(**read(part)) for part in document.get(name, ()))
    return Plan(**document)


def _operation(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "sends": tuple(part["sends"]), "look_ups": tuple(part["look_ups"])}


def _destination(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "answers": tuple(part["answers"])}


SPANS_IN_RULES = ("dispatch_timeout_s", "settle_s", "key_ttl_s", "approval_ttl_s")
LONG_S = 60.0
"""Spans of this length mean `for ever` in a schedule, and are not stretched."""


def stretched(plan: Plan, factor: float) -> Plan:
    """The same plan for a machine that is so many times slower: every time and every short span is longer."""

    def longer(at_ms: int) -> int:
        return int(at_ms * factor)

    return replace(
        plan,
        operations=tuple(_stretched(operation, factor) for operation in plan.operations),
        faults=tuple(replace(fault, hold_ms=longer(fault.hold_ms)) for fault in plan.faults),
        messages=tuple(replace(message, at_ms=longer(message.at_ms)) for message in plan.messages),
        happenings=tuple(replace(h, at_ms=longer(h.at_ms)) for h in plan.happenings),
        chaos_ms=longer(plan.chaos_ms),
        ack_deadline_s=_span(plan.ack_deadline_s, factor),
    )


def _stretched(operation: PlannedOperation, factor: float) -> PlannedOperation:
    rule = {
        name: _span(value, factor) if name in SPANS_IN_RULES else value
        for name, value in operation.rule.items()
    }
    keys_s, starts_ms = _span(operation.keys_s, factor), int(operation.starts_ms * factor)
    return replace(operation, rule=rule, keys_s=keys_s, starts_ms=starts_ms)


def _span(seconds: float, factor: float) -> float:
    return seconds if seconds >= LONG_S else round(seconds * factor, 3)
