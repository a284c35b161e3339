"""The product's own spans, compressed in the children so that a schedule takes about a second.

Each row: where the constant stands, how long it is in a schedule, how long it is in the product, and the
factor between them. Spans of policies are not here: each plan has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module

WAITS_S: Mapping[str, float] = {
    "ledger.rules.backoff:LOOK_UP_FIRST_S": 0.02,  # 2 s: 100
    "ledger.rules.backoff:LOOK_UP_MOST_S": 0.3,  # 300 s: 1,000
    "ledger.rules.backoff:PROBE_LEAST_S": 0.02,  # 0.5 s: 25
    "ledger.rules.backoff:PROBE_FIRST_S": 0.02,  # 1 s: 50
    "ledger.rules.backoff:PROBE_MOST_S": 0.3,  # 30 s: 100
    "ledger.rules.backoff:RESEND_FIRST_S": 0.05,  # 5 s: 100
    "ledger.rules.backoff:RESEND_MOST_S": 0.3,  # 600 s: 2,000
    "ledger.reconciliation.resend:REST_S": 0.1,  # 10 s: 100
    "ledger.lifecycle.leave:_ASK_AGAIN_AT_LEAST": 0.05,  # 2 s: 40
    "ledger.lifecycle.leave:_ASK_AGAIN_AT_MOST": 0.3,  # 120 s: 400
    "ledger.providers.pace:USUAL_HOLD_S": 0.05,  # 1 s: 20
    "ledger.reconciliation.resend:LONGEST_WAIT_S": 0.05,  # 0.5 s: 10
    "ledger.client.transport:FIRST_WAIT_S": 0.02,  # 0.2 s: 10
    "ledger.client.transport:MOST_WAIT_S": 0.1,  # 5 s: 50
}
"""Waits: how long until something is tried again."""

LIMITS_S: Mapping[str, float] = {
    "ledger.reconciliation.claims:LOOK_UP_LEASE": 0.6,  # 30 s: 50
    "ledger.reconciliation.runner:LOOK_UP_S": 0.3,  # 15 s: 50
    "ledger.reconciliation.resend:SEND_S": 0.3,  # 15 s: 50
    "ledger.providers.pace:LONGEST_HOLD_S": 0.3,  # 30 s: 100
    "tests.crash.suite.agent:ANSWER_WITHIN_S": 0.3,  # the agent's own
    "tests.crash.suite.agent:CALL_WITHIN_S": 1.0,  # 10 s, the client's usual: 10
}
"""Limits: how long something may take. They are stretched with `patience` where the machine is slow."""

DATABASE_TIMEOUTS_S = {
    "lock_timeout": 0.2,  # 2 s: 10
    "statement_timeout": 2.0,  # 10 s: 5
    "idle_in_transaction_session_timeout": 0.7,  # 15 s: 21
}


def compress(patience: float = 1.0) -> None:
    """Put both tables in force in this process and those it forks, the limits so many times as long."""
    limits = {place: seconds * patience for place, seconds in LIMITS_S.items()}
    for place, seconds in {**WAITS_S, **limits}.items():
        module, name = place.split(":")
        owner = import_module(module)
        was = getattr(owner, name)
        setattr(owner, name, timedelta(seconds=seconds) if isinstance(was, timedelta) else seconds)


def database_options(options: str) -> str:
    """The connection's options with these time limits."""
    limits = [f"-c {name}={seconds * 1000:.0f}ms" for name, seconds in DATABASE_TIMEOUTS_S.items()]
    return " ".join([options, *limits])
