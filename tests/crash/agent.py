"""An agent as a process: it posts its one operation, obeys the directive, and can be stopped at a point.

    LEDGER_URL, LEDGER_API_KEY, PROVIDER_URL, OPERATION_KEY, TOOL, RESOURCE, ARGS (JSON), STOP_AT, FREEZE_AT

Every line on standard output is JSON: first what it was told, then the point it stands still at, or how it
ended. At the point STOP_AT it waits for its SIGKILL; at FREEZE_AT it is stopped (SIGSTOP) and goes on when it
is continued. Both may be empty.
"""

import json
import os
import signal
from typing import Any

import httpx

from ledger.client import Ledger, LedgerError


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def stand_still(point: str, **what: Any) -> None:
    """Wait here to be killed, or be stopped, if this is the point."""
    if os.environ.get("FREEZE_AT") == point:
        say(at=point, **what)
        os.kill(os.getpid(), signal.SIGSTOP)
    if os.environ.get("STOP_AT") == point:
        say(at=point, **what)
        signal.pause()


def send(args: dict[str, Any], key: str, correlation_id: str, args_hash: str) -> str:
    body = {**args, "metadata": {"correlation_id": correlation_id, "args_hash": args_hash}}
    url = f"{os.environ['PROVIDER_URL']}/{os.environ['RESOURCE']}"
    answer = httpx.post(url, json=body, headers={"Idempotency-Key": key}, timeout=60, trust_env=False)
    return str(answer.raise_for_status().json()["id"])


def main() -> None:
    ledger = Ledger.from_env()
    args: dict[str, Any] = json.loads(os.environ["ARGS"])
    key, tool = os.environ["OPERATION_KEY"], os.environ["TOOL"]
    told = ledger.post_intent(key, tool=tool, args=args)
    say(told=told.directive)
    stand_still("recorded")
    try:
        with ledger.operation(key, tool=tool, args=args) as op:
            if op.done:
                return say(ended="done", result_ref=op.result_ref)
            stand_still("leave", key=op.idempotency_key)
            reference = send(op.args, op.idempotency_key, op.correlation_id, told.args_hash)
            stand_still("answered")
            op.provider_request(reference)
            stand_still("named")
            op.confirm(result_ref=reference)
            say(ended="sent", key=op.idempotency_key, result_ref=reference)
    except LedgerError as error:
        say(ended=type(error).__name__)


if __name__ == "__main__":
    main()
