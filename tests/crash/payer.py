"""An agent that pays: it goes through all its steps from the first, as often as it is started, and obeys.

    LEDGER_URL, LEDGER_API_KEY, LEDGER_STATE_DIR, STRIPE_URL, STEPS (a file), DIE_AT (`point:number` or empty)

It keeps no notes of its own: what is done, the ledger tells it. It dies by SIGKILL the given time it comes to
the point. Exit code 0: every step is done; 3: it came to the end, and some wait.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from ledger.client import Ledger, LedgerError
from tests.support.localstripe import as_form, bearer

SOME_WAIT = 3
POINT, _, NUMBER = os.environ.get("DIE_AT", "").partition(":")
visits: Counter[str] = Counter()


def may_die(point: str) -> None:
    visits[point] += 1
    if point == POINT and visits[point] == int(NUMBER):
        os.kill(os.getpid(), signal.SIGKILL)


def send(tool: str, args: dict[str, Any], key: str, correlation_id: str) -> str:
    resource = {"charge.create": "charges", "refund.create": "refunds"}[tool]
    body = as_form({**args, "metadata": {"correlation_id": correlation_id}})
    headers = {**bearer(), "Idempotency-Key": key}
    url = f"{os.environ['STRIPE_URL']}/v1/{resource}"
    answer = httpx.post(url, data=body, headers=headers, timeout=60, trust_env=False)
    return str(answer.raise_for_status().json()["id"])


def pay(ledger: Ledger, key: str, tool: str, args: dict[str, Any]) -> str | None:
    """The provider's reference. Raises what the ledger tells an agent that must not send."""
    may_die("before the intent")
    if ledger.post_intent(key, tool=tool, args=args).directive == "dispatch":
        may_die("after the intent")
    with ledger.operation(key, tool=tool, args=args) as op:
        if op.done:
            return op.result_ref
        may_die("after leave")
        reference = send(tool, op.args, op.idempotency_key, op.correlation_id)
        may_die("after the answer")
        op.provider_request(reference)
        may_die("after its request id")
        op.confirm(result_ref=reference)
        may_die("after the outcome")
    return reference


def main() -> int:
    ledger, results = Ledger.from_env(), dict[str, str | None]()
    steps = json.loads(Path(os.environ["STEPS"]).read_text())
    for step in steps:
        args = dict(step["args"])
        if step["of"]:
            charge = results.get(step["of"])
            if charge is None:
                continue
            args["charge"] = charge
        try:
            results[step["key"]] = pay(ledger, step["key"], step["tool"], args)
        except LedgerError:
            continue
    return 0 if len(results) == len(steps) else SOME_WAIT


if __name__ == "__main__":
    sys.exit(main())
