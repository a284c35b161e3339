"""A send of the ledger's own that cannot even be asked for."""

from __future__ import annotations

from ledger.events import SENDER
from ledger.lifecycle.leave import record_refusal, wait_for_a_better_time
from ledger.lifecycle.locking import locked_attempt
from ledger.rules.states import WAITS_FOR_AGENT


def keep_waiting(*, attempt_id: str, because: str) -> None:
    """Nobody could send it, so leave is not asked for; the history says why, once, and it is tried again."""
    with locked_attempt(attempt_id, tenant_id=None, actor=SENDER) as (case, asked):
        attempt = case.speaker(asked)
        if attempt.state not in WAITS_FOR_AGENT and attempt.pk not in case.approvals:
            return
        record_refusal(case, attempt, {"reasons": [because]})
        wait_for_a_better_time(case, attempt)
