"""The product's own spans, compressed in the children so that a schedule takes about a second.

Each row: where the constant stands, how long it is in a schedule, how long it is in the product, and the
factor between them. Spans of policies are not here: each plan has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any

DELIVERY_WAITS_S = (0.0, 0.02, 0.04, 0.06)

WAITS_S: Mapping[str, float | tuple[float, ...]] = {
    "ledger.rules.backoff:LOOK_UP_FIRST_S": 0.02,  # 2 s: 100
    "ledger.rules.backoff:LOOK_UP_MOST_S": 0.3,  # 300 s: 1,000
    "ledger.rules.backoff:PROBE_LEAST_S": 0.02,  # 0.5 s: 25
    "ledger.rules.backoff:PROBE_FIRST_S": 0.02,  # 1 s: 50
    "ledger.rules.backoff:PROBE_MOST_S": 0.3,  # 30 s: 100
    "ledger.rules.backoff:RESEND_FIRST_S": 0.05,  # 5 s: 100
    "ledger.rules.backoff:RESEND_MOST_S": 0.3,  # 600 s: 2,000
    "ledger.reconciliation.resend:REST_S": 0.1,  # 10 s: 100
    "ledger.reconciliation.resend:RECORD_AGAIN_S": 0.02,  # 0.2 s: 10
    "ledger.lifecycle.leave:_ASK_AGAIN_AT_LEAST": 0.05,  # 2 s: 40
    "ledger.lifecycle.leave:_ASK_AGAIN_AT_MOST": 0.3,  # 120 s: 400
    "ledger.providers.pace:USUAL_HOLD_S": 0.05,  # 1 s: 20
    "ledger.reconciliation.resend:LONGEST_WAIT_S": 0.05,  # 0.5 s: 10
    "ledger.rules.backoff:DELIVERY_WAITS_S": DELIVERY_WAITS_S,  # 0 s, 5 s, 5 min, … 10 h: eight tries
    "ledger.rules.deliveries:LONGEST_RETRY_AFTER_S": 0.1,  # 10 h: 360,000
    "ledger.rules.deliveries:NOT_SENT_WAIT_S": 0.1,  # 30 s: 300
    "ledger.deliveries.health:NOT_SENT_WAIT_S": 0.1,
    "ledger.rules.deliveries:REST_FIRST_S": 0.05,  # 1 s: 20
    "ledger.rules.deliveries:REST_MOST_S": 0.2,  # 300 s: 1,500
    "ledger.client.transport:FIRST_WAIT_S": 0.02,  # 0.2 s: 10
    "ledger.client.transport:MOST_WAIT_S": 0.1,  # 5 s: 50
}
"""Waits: how long until something is tried again."""

LIMITS_S: Mapping[str, float] = {
    "ledger.reconciliation.claims:LOOK_UP_LEASE": 0.6,  # 30 s: 50
    "ledger.reconciliation.asking:LOOK_UP_S": 0.3,  # 15 s: 50
    "ledger.reconciliation.resend:SEND_S": 0.3,  # 15 s: 50
    "ledger.reconciliation.resend:RECORD_WITHIN_S": 0.3,  # 10 s: 33
    "ledger.providers.pace:LONGEST_HOLD_S": 0.3,  # 30 s: 100
    "ledger.deliveries.claiming:LEASE": 0.4,  # 8 s: 20
    "ledger.deliveries.claiming:RENEWED_EVERY_S": 0.1,  # 2 s: 20
    "tests.crash.suite.worker:TRY_WITHIN_S": 0.3,  # 20 s for a whole try: 70
    "tests.crash.suite.agent:ANSWER_WITHIN_S": 0.3,  # the agent's own
    "tests.crash.suite.agent:CALL_WITHIN_S": 1.0,  # 10 s, the client's usual: 10
}
"""Limits: how long something may take. They are stretched with `patience` where the machine is slow."""

COUNTS: Mapping[str, int] = {
    f"ledger.{module}:MOST_TRIES": len(DELIVERY_WAITS_S)
    for module in ("rules.deliveries", "deliveries.claiming", "deliveries.holding")
}
"""How many tries a delivery has: as many as it has waits here, instead of eight."""

DATABASE_TIMEOUTS_S = {
    "lock_timeout": 0.2,  # 2 s: 10
    "statement_timeout": 2.0,  # 10 s: 5
    "idle_in_transaction_session_timeout": 0.7,  # 15 s: 21
}


def compress(patience: float = 1.0) -> None:
    """Put the tables in force in this process and those it forks, the limits so many times as long."""
    limits = {place: seconds * patience for place, seconds in LIMITS_S.items()}
    values: dict[str, Any] = {**WAITS_S, **limits, **COUNTS}
    for place, value in values.items():
        module, name = place.split(":")
        owner = import_module(module)
        was = getattr(owner, name)
        setattr(owner, name, timedelta(seconds=value) if isinstance(was, timedelta) else value)


def database_options(options: str) -> str:
    """The connection's options with these time limits."""
    limits = [f"-c {name}={seconds * 1000:.0f}ms" for name, seconds in DATABASE_TIMEOUTS_S.items()]
    return " ".join([options, *limits])
