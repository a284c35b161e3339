"""Plans worth trying against planted bugs: the blow and the answers that a safeguard is there for.

The product itself is green under every one of them. The n-th of a shape may strike at another place, or in
another way, than the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.crash.suite.plan import Fault, Happening, Message, Plan, PlannedDestination, PlannedOperation

RULE = {
    "effect": "write",
    "dispatch_timeout_s": 0.1,
    "settle_s": 0.1,
    "max_checks": 50,
    "approvals": 1,
    "approval_ttl_s": 600,
    "provider": "p0",
    "executor": "agent",
}
PROMISES_KEYS: dict[str, Any] = {"idempotent": True, "key_ttl_s": 3600}
"""To be tested where the provider forgets at once: there is only the ledger's own proof."""
CHAOS_MS = 600


def _operation(*, without: tuple[str, ...] = (), **rule: Any) -> PlannedOperation:
    found = {name: value for name, value in {**RULE, **rule}.items() if name not in without}
    return PlannedOperation(rule=found, keys_s=0.0)


def _plan(n: int, operation: PlannedOperation, *faults: Fault, **more: Any) -> Plan:
    aim = faults[-1].point if faults else ""
    planned = {"seed": n, "aim": aim, "operations": (operation,), "messages": (), "chaos_ms": CHAOS_MS}
    return Plan(faults=faults, **{**planned, **more})


def _again_and_again(task: str, *, worker: str = "w1", **how: Any) -> Iterator[Message]:
    for at_ms in range(how.pop("first_ms", 40), how.pop("last_ms", CHAOS_MS), how.pop("every_ms", 50)):
        yield Message(at_ms, task, worker, **how)


def _pick(n: int, *choices: Any) -> Any:
    return choices[(n - 1) % len(choices)]


def two_verbs_at_once(n: int) -> Plan:
    """A reconciler is stopped before its commit, while a person notes something about the same operation."""
    return _plan(
        n,
        replace(_operation(), sends=("accept_pending",)),
        Fault("agent.sent", 1, "kill"),
        Fault("reconciler.apply.before_commit", 1 + n % 2, "stop", 150),
        messages=(*_again_and_again("sweep", worker="w2"), *_again_and_again("reconcile")),
        insists="press:note",
    )


def two_senders_at_once(n: int) -> Plan:
    """Two of the ledger's own senders find the same work, every time."""
    operation = _operation(executor="ledger", dispatch_timeout_s=0.4)
    operations = tuple(
        replace(operation, rule={**operation.rule, "provider": f"p{number}"}, starts_ms=80 * number)
        for number in range(3)
    )
    messages = tuple(_again_and_again("send", every_ms=25, delivery="twice"))
    return replace(_plan(n, operation, messages=messages), operations=operations)


def sent_for_nothing(n: int) -> Plan:
    """Sent, never arrived, proven absent: a person approves another send."""
    return _plan(n, replace(_operation(), sends=("drop_before",)), chaos_ms=250)


def sent_and_died(n: int) -> Plan:
    """The agent dies after it has sent; its lease runs out, and it comes back before anybody has looked."""
    fault = Fault(_pick(n, "agent.sent", "agent.answered"), 1, "kill")
    return _plan(n, _operation(), fault, messages=tuple(_again_and_again("sweep", worker="w2")))


def seen_late(n: int) -> Plan:
    """What was done cannot be seen at first."""
    operation = _operation(**PROMISES_KEYS, settle_s=0.3)
    late = replace(operation, sends=("accept_then_drop",), look_ups=("lag",))
    return _plan(n, late, messages=tuple(_again_and_again("reconcile")))


def seen_very_late(n: int) -> Plan:
    """It is taken for absent, rightly by all rules, and sent again: its provider knows the key."""
    operation = _operation(**PROMISES_KEYS, settle_s=0.05)
    late = replace(operation, keys_s=3600.0, sends=("accept_then_drop",), look_ups=("lag",) * 8)
    return _plan(n, late, messages=tuple(_again_and_again("reconcile")))


def not_allowed_to_look(n: int) -> Plan:
    """What was done cannot be seen by this key, and neither can anything else."""
    mode = _pick(n, "not_found_for_forbidden", "wrong_tenant")
    operation = _operation(**PROMISES_KEYS, settle_s=0.05)
    unseen = replace(operation, sends=("accept_then_drop",), look_ups=(mode,) * 30)
    messages = tuple(_again_and_again("reconcile", last_ms=1000))
    return _plan(n, unseen, messages=messages, chaos_ms=1000)


def taken_and_failed(n: int) -> Plan:
    """It was accepted, and failed there; the agent does not hear of it."""
    operation = replace(_operation(settle_s=0.05), sends=("accept_failed",))
    return _plan(n, operation, messages=tuple(_again_and_again("reconcile")))


def done_and_unreadable(n: int) -> Plan:
    """It was done, and for a while no look-up can be read."""
    mode = _pick(n, "truncated", "not_json", "server_error")
    unread = replace(_operation(settle_s=0.05), sends=("accept_then_drop",), look_ups=(mode,) * 12)
    return _plan(n, unread, messages=tuple(_again_and_again("reconcile")))


def rule_changes(n: int) -> Plan:
    """A new send is approved, then the rule changes, and only then the ledger comes to send it."""
    operation = _operation(executor="ledger", settle_s=0.05)
    last_ms = 1200
    presses = (Happening(at_ms, "press", detail="approve") for at_ms in range(300, last_ms - 200, 60))
    return _plan(
        n,
        replace(operation, sends=("drop_before",)),
        messages=(
            Message(60, "send", "w2"),
            Message(160, "send", "w2"),
            *_again_and_again("reconcile", last_ms=last_ms),
        ),
        happenings=(*presses, Happening(last_ms, "publish")),
        chaos_ms=last_ms + 50,
    )


def reconciler_stopped(n: int) -> Plan:
    """A reconciler is stopped with an answer in its hand, until another one has asked again."""
    return _plan(
        n,
        replace(_operation(), sends=("accept_pending",)),
        Fault("agent.sent", 1, "kill"),
        Fault("reconciler.answered", 1, "stop", 1000),
        messages=(
            *_again_and_again("sweep", worker="w2"),
            *_again_and_again("reconcile", delivery="twice", last_ms=1400),
        ),
        chaos_ms=1500,
    )


def reporter_stopped(n: int) -> Plan:
    """The report of an outcome waits inside its transaction until the send lease is over."""
    fault = Fault("outcome.statement", _pick(n, 2, 1, 3), "stop", 350)
    return _plan(n, _operation(), fault, messages=tuple(_again_and_again("sweep")))


def leave_rolled_back(n: int) -> Plan:
    """Leave is given with an approval, and rolled back."""
    fault = Fault("leave.before_commit", 1, _pick(n, "error", "kill", "cut"))
    return _plan(n, _operation(review="always"), fault, insists="press:approve")


def approved_send(n: int) -> Plan:
    """A person approves a first send."""
    return _plan(n, _operation(review="always"), insists="press:approve")


def resumed_run(n: int) -> Plan:
    """An agent dies while what it spends is reserved, and opens its run again."""
    fault = Fault(_pick(n, "agent.sent", "agent.leave", "agent.named"), 1, "kill")
    return _plan(n, _operation(), fault, run_calls=50)


def leave_lost(n: int) -> Plan:
    """The transaction of leave does not come to its end."""
    fault = Fault("leave.before_commit", 1, _pick(n, "error", "cut", "kill"))
    return _plan(n, _operation(dispatch_timeout_s=0.4), fault)


def key_narrowed(n: int) -> Plan:
    """Between intent and leave the agent loses the right to this tool."""
    happenings = (Happening(150, "narrow"),)
    return _plan(n, _operation(), Fault("agent.recorded", 1, "stop", 300), happenings=happenings)


def outcome_lost(n: int) -> Plan:
    """The transaction of an outcome does not come to its end."""
    fault = Fault("outcome.before_commit", 1, _pick(n, "error", "kill", "cut"))
    return _plan(n, _operation(dispatch_timeout_s=0.4), fault)


def late_receipt(n: int) -> Plan:
    """The agent is stopped with the receipt in its hand, and the tool has no look-up that could find it."""
    fault = Fault(_pick(n, "agent.answered", "agent.named"), 1, "stop", 350)
    messages = (*_again_and_again("sweep", worker="w2"), *_again_and_again("reconcile"))
    return _plan(n, _operation(without=("provider",)), fault, messages=tuple(messages))


def _told(n: int, *faults: Fault, answers: tuple[str, ...] = (), ack: str = "response") -> Plan:
    """One result, done at once, and one consumer."""
    return _plan(
        n,
        _operation(dispatch_timeout_s=0.4),
        *faults,
        destinations=(PlannedDestination(ack, answers),),
        insists="agents",
    )


def told_again(n: int) -> Plan:
    """The consumer has it, and the ledger does not learn of that."""
    return _told(n, answers=(_pick(n, "lost", "server_error", "dies_before_answer"),))


def settled_and_died(n: int) -> Plan:
    """Whoever settled it dies after its commit."""
    return _told(n, Fault("outcome.after_commit", 1, "kill"))


def claimed_and_died(n: int) -> Plan:
    """The deliverer dies before it sends, or before anybody has answered."""
    fault = Fault(_pick(n, "delivery.claimed", "delivery.sent"), 1, "kill")
    return _told(n, fault, ack=_pick(n, "response", "response", "explicit"))


def refused_once(n: int) -> Plan:
    """The consumer cannot take it now."""
    return _told(n, answers=(_pick(n, "unavailable", "refused", "throttled", "gone"),))
