"""`plan_of(seed)`: a plan for each number. Consecutive numbers aim at one point after the other."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.crash.suite.consumer_modes import WORDS
from tests.crash.suite.plan import Fault, Happening, Message, Plan, PlannedDestination, PlannedOperation
from tests.crash.suite.points import POINTS, kinds_at
from tests.crash.suite.provider_modes import LOOK_UPS, SENDS

TASKS = ("sweep", "reconcile", "send")
WORKERS = ("w1", "w2")
DEATHS = {"recover": "agent.leave", "sweep": "agent.leave"}
"""Aims that somebody has to die for first, and where."""
DELIVERIES = ("delivery.", "destination.", "ack.")
"""How aims at the second state machine begin."""
UNHEARD = ("accept_then_drop", "drop_before", "accept_then_server_error", "truncated", "slow_answer")
"""Sends after which the provider has to be asked."""


def plan_of(seed: int) -> Plan:
    """The plan of this number; always the same for the same generator."""
    chance = Random(seed)
    aim = POINTS[seed % len(POINTS)]
    count = 3 if aim.startswith("sender.put_off") else chance.choice((1, 1, 1, 2, 2, 3))
    operations = tuple(_operation(chance, aim, number) for number in range(count))
    chaos_ms = chance.randrange(250, 500)
    destinations = _destinations(chance, aim)
    return Plan(
        seed=seed,
        aim=aim,
        operations=operations,
        faults=(*_faults_for(chance, aim), *_more_faults(chance)),
        messages=_messages(chance, chaos_ms, operations),
        happenings=_happenings(chance, chaos_ms, operations, letters=bool(destinations)),
        insists=_insists(aim),
        state_dir=aim.startswith("recover.") or chance.random() < 0.2,
        chaos_ms=chaos_ms,
        run_calls=chance.choice((3, 50)) if chance.random() < 0.2 else 0,
        destinations=destinations,
        hints_lost=chance.random() < 0.3,
    )


_INSISTS = {
    "cancel.": "cancel",
    "delivery.person": "letter:redeliver",
    "destination.": "letter:toggle",
    "reconciler.": "reconcile",
    "sweep.": "sweep",
    "sender.": "send",
    "decision.approve": "press:approve",
    "decision.arguments": "press:arguments",
    "decision.assign": "press:assign",
    "decision.note": "press:note",
    "decision.other": "press:reject",
}


def _insists(aim: str) -> str:
    """What has to be done for the aimed point to be passed; agents work of their own accord."""
    return next((what for begins, what in _INSISTS.items() if aim.startswith(begins)), "agents")


def _operation(chance: Random, aim: str, number: int) -> PlannedOperation:
    by_ledger = aim.startswith("sender.") or (not _by_agent(aim) and chance.random() < 0.3)
    keys_s = chance.choice((0.0, 0.4, 3600.0, 3600.0))
    look_up = by_ledger or aim.startswith("reconciler.") or chance.random() < 0.85
    return PlannedOperation(
        rule=_rule(chance, aim, by_ledger=by_ledger, keys_s=keys_s, look_up=look_up, number=number),
        keys_s=keys_s,
        sends=_sends(chance, aim),
        look_ups=_some(chance, LOOK_UPS, most=3) if chance.random() < 0.5 else (),
        starts_ms=0 if number == 0 else chance.randrange(0, 120),
        late_provider=by_ledger and (aim.startswith("sender.cannot") or chance.random() < 0.05),
        heartbeat=aim.startswith("heartbeat") or chance.random() < 0.1,
    )


def _destinations(chance: Random, aim: str) -> tuple[PlannedDestination, ...]:
    """Of plans that aim at deliveries, and of a few others."""
    if not aim.startswith(DELIVERIES) and chance.random() >= 0.15:
        return ()
    if aim.startswith("ack."):
        return (PlannedDestination("explicit"),)
    first = PlannedDestination(_ack(chance), _answers(chance))
    return (first, PlannedDestination(_ack(chance), _answers(chance))) if chance.random() < 0.3 else (first,)


def _ack(chance: Random) -> str:
    return chance.choice(("response", "response", "explicit"))


def _answers(chance: Random) -> tuple[str, ...]:
    """The first tries; sometimes the same thing for as long as anybody tries."""
    if chance.random() < 0.2:
        return (chance.choice(("unavailable", "lost", "refused", "no_ack")),) * 6
    return _some(chance, WORDS, most=3) if chance.random() < 0.7 else ()


def _by_agent(aim: str) -> bool:
    first = (*DELIVERIES, "agent.", "leave.", "heartbeat.", "request_id.", "outcome.", "recover.", "sweep.")
    return aim.startswith(first)


def _sends(chance: Random, aim: str) -> tuple[str, ...]:
    if aim.startswith(DELIVERIES):
        return ("honest",)
    if aim.startswith("sender.put_off"):
        return ("too_many_requests",) * 3
    if aim.startswith(("reconciler.", "agent.answered", "agent.named", "request_id", "outcome")):
        quiet = aim.startswith(("agent", "request_id", "outcome"))
        return ("honest",) if quiet else (chance.choice(UNHEARD), *_some(chance, SENDS, most=1))
    return _some(chance, SENDS, most=2) if chance.random() < 0.6 else ()


def _some(chance: Random, modes: tuple[str, ...], *, most: int) -> tuple[str, ...]:
    return tuple(chance.choice(modes) for _ in range(chance.randint(1, most)))


def _rule(
    chance: Random, aim: str, *, by_ledger: bool, keys_s: float, look_up: bool, number: int
) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "effect": chance.choice(("payment", "message", "write", "deletion", "deployment")),
        "dispatch_timeout_s": chance.choice((0.1, 0.25, 0.4)),
        "settle_s": chance.choice((0.05, 0.1)),
        "max_checks": chance.randint(6, 20),
        "max_attempts": chance.randint(2, 5),
        "approvals": chance.choice((1, 1, 2)),
        "approval_ttl_s": chance.choice((0.3, 600, 600, 600)),
        "confirm": chance.choice(("receipt", "receipt", "lookup")) if look_up else "receipt",
        "executor": "ledger" if by_ledger else "agent",
    }
    if keys_s:
        rule |= {"idempotent": True, "key_ttl_s": keys_s}
    if look_up:
        rule["provider"] = f"p{number}"
    if aim.startswith("decision.") or chance.random() < 0.06:
        rule["review"] = "always"
    return rule


def _faults_for(chance: Random, aim: str) -> tuple[Fault, ...]:
    """The blow this plan is about, and where it takes one, the death that leads to it."""
    nth = chance.choice((1, 2, 3, 4, 5, 6, 8, 11, 14)) if aim.endswith(".statement") else 1
    blow = _fault(chance, aim, nth)
    dies_first = DEATHS.get(aim.split(".", maxsplit=1)[0])
    return (Fault(dies_first, 1, "kill"), blow) if dies_first else (blow,)


def _more_faults(chance: Random) -> tuple[Fault, ...]:
    return tuple(
        _fault(chance, chance.choice(POINTS), chance.randint(1, 3))
        for _ in range(chance.choice((0, 0, 1, 2)))
    )


def _fault(chance: Random, point: str, nth: int) -> Fault:
    kinds = kinds_at(point)
    weights = [{"kill": 6, "postgres": 1}.get(kind, 2) for kind in kinds]
    kind = chance.choices(kinds, weights)[0]
    return Fault(point, nth, kind, chance.choice((150, 350, 600, 900)) if kind == "stop" else 0)


def _messages(chance: Random, chaos_ms: int, operations: tuple[PlannedOperation, ...]) -> tuple[Message, ...]:
    """Hints to the workers, most of them delivered; the sender's only where there is something for it."""
    tasks = TASKS if any(o.rule["executor"] == "ledger" for o in operations) else TASKS[:2]
    sent = [
        Message(
            chance.randrange(40, 2 * chaos_ms),
            chance.choice(tasks),
            chance.choice(WORKERS),
            chance.choices(("once", "twice", "late", "lost"), (6, 2, 1, 1))[0],
        )
        for _ in range(chance.randint(3, 9))
    ]
    return tuple(sorted(sent, key=lambda message: message.at_ms))


_HAPPENINGS = (
    "cancel",
    "revoke",
    "narrow",
    "publish",
    "suspend",
    "variant",
    "rival",
    "rival",
    "wipe",
    "press",
    "press",
    "press",
)
_LETTERS = ("redeliver", "redeliver", "give_up", "toggle")
_PRESSES = ("approve", "approve", "reject", "happened", "did_not", "recheck", "arguments", "note", "assign")


def _happenings(
    chance: Random, chaos_ms: int, operations: tuple[PlannedOperation, ...], *, letters: bool
) -> tuple[Happening, ...]:
    """What comes from outside, late enough for something to have begun."""
    planned = [_happening(chance, chaos_ms, operations) for _ in range(chance.choice((0, 0, 1, 1, 2)))]
    late = [number for number, operation in enumerate(operations) if operation.late_provider]
    planned += [Happening(chaos_ms - 1, "add_provider", number) for number in late]
    if letters and chance.random() < 0.4:
        at_ms = chance.randrange(200, chaos_ms)
        planned.append(Happening(at_ms, "letter", detail=chance.choice(_LETTERS)))
    return tuple(sorted(planned, key=lambda happening: happening.at_ms))


def _happening(chance: Random, chaos_ms: int, operations: tuple[PlannedOperation, ...]) -> Happening:
    what = chance.choice(_HAPPENINGS)
    detail = chance.choice(_PRESSES) if what == "press" else ""
    return Happening(chance.randrange(100, chaos_ms), what, chance.randrange(len(operations)), detail)
