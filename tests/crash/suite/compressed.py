"""The product's own spans, compressed in the children so that a schedule takes about a second.

Each row: where the constant stands, how long it is in a schedule, and by what factor that is shorter. Spans of
policies are not here: they are as short as policies allow, by each plan.
"""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

SPANS_S: dict[str, float] = {
    "ledger.rules.backoff:LOOK_UP_FIRST_S": 0.02,  # 2 s: 100
    "ledger.rules.backoff:LOOK_UP_MOST_S": 0.3,  # 300 s: 1,000
    "ledger.rules.backoff:PROBE_LEAST_S": 0.02,  # 0.5 s: 25
    "ledger.rules.backoff:PROBE_FIRST_S": 0.02,  # 1 s: 50
    "ledger.rules.backoff:PROBE_MOST_S": 0.3,  # 30 s: 100
    "ledger.rules.backoff:RESEND_FIRST_S": 0.05,  # 5 s: 100
    "ledger.rules.backoff:RESEND_MOST_S": 0.3,  # 600 s: 2,000
    "ledger.reconciliation.claims:LOOK_UP_LEASE": 0.6,  # 30 s: 50
    "ledger.reconciliation.runner:LOOK_UP_S": 0.3,  # 15 s: 50
    "ledger.reconciliation.resend:SEND_S": 0.3,  # 15 s: 50
    "ledger.reconciliation.resend:REST_S": 0.1,  # 10 s: 100
    "ledger.lifecycle.leave:_ASK_AGAIN_AT_LEAST": 0.05,  # 2 s: 40
    "ledger.lifecycle.leave:_ASK_AGAIN_AT_MOST": 0.3,  # 120 s: 400
    "ledger.providers.pace:USUAL_HOLD_S": 0.05,  # 1 s: 20
    "ledger.providers.pace:LONGEST_HOLD_S": 0.3,  # 30 s: 100
    "ledger.reconciliation.resend:LONGEST_WAIT_S": 0.05,  # 0.5 s: 10
    "ledger.client.transport:FIRST_WAIT_S": 0.02,  # 0.2 s: 10
    "ledger.client.transport:MOST_WAIT_S": 0.1,  # 5 s: 50
}

DATABASE_TIMEOUTS_S = {
    "lock_timeout": 0.2,  # 2 s: 10
    "statement_timeout": 2.0,  # 10 s: 5
    "idle_in_transaction_session_timeout": 0.7,  # 15 s: 21
}


def compress() -> None:
    """Put the table in force in this process and those it forks."""
    for place, seconds in SPANS_S.items():
        module, name = place.split(":")
        owner = import_module(module)
        was = getattr(owner, name)
        setattr(owner, name, timedelta(seconds=seconds) if isinstance(was, timedelta) else seconds)


def database_options(options: str) -> str:
    """The connection's options with these time limits."""
    limits = [f"-c {name}={seconds * 1000:.0f}ms" for name, seconds in DATABASE_TIMEOUTS_S.items()]
    return " ".join([options, *limits])
