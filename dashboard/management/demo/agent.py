"""One worker of the demo's agent: a real process, written as any agent would be, and killed for real.

    LEDGER_URL=… LEDGER_API_KEY=… python -m dashboard.management.demo.agent --provider http://127.0.0.1:8123

A job is a line of JSON on standard input, what came of it a line on standard output. A job may name a
boundary: arrived there, the worker says so and takes no further step, so that whoever started it can send
SIGKILL at exactly that moment. It ends when its input does. It needs ledger.client and the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from dashboard.management.demo import wire
from dashboard.management.demo.jobs import Boundary, Job, Reply, Said
from ledger.client import (
    DefiniteFailure,
    DuplicateOperation,
    Ledger,
    LedgerError,
    LedgerUnavailable,
    Operation,
    PendingReview,
)

Reached = Callable[[Boundary, str], None]
CONFLICT = 409


def work(ledger: Ledger, provider_url: str, job: Job, reached: Reached) -> Reply:
    """Post the intent and obey the directive: for a new job, and for one that a dead worker left."""
    try:
        if job.stop_at is Boundary.BEFORE_LEAVE:
            ledger.post_intent(job.key, tool=job.tool, args=job.args, **_more(job))
            reached(Boundary.BEFORE_LEAVE, "")
        with ledger.operation(job.key, tool=job.tool, args=job.args, **_more(job)) as op:
            sent = not op.done
            if sent:
                _send(op, provider_url, job, reached)
    except LedgerError as error:
        return _not_done(error)
    except (wire.ProviderSilent, DefiniteFailure) as error:
        return Reply(said=Said.WAITS, reason=str(error))
    said = Said.DONE if op.done or op.state == "OUTCOME_CONFIRMED" else Said.WAITS
    return Reply(said=said, state=op.state, result_ref=op.result_ref or "", sent=sent)


def _send(op: Operation, provider_url: str, job: Job, reached: Reached) -> None:
    reached(Boundary.BEFORE_SENDING, op.correlation_id)
    body = {**op.args, "metadata": {"correlation_id": op.correlation_id}}
    request = wire.send(provider_url, "POST", f"/{job.resource}", body, key=op.idempotency_key)
    reached(Boundary.BEFORE_ANSWER, op.correlation_id)
    status, thing = request.answer()
    if status == CONFLICT:
        raise DefiniteFailure("refused", "the provider knows this key with another body")
    if status not in {200, 201}:
        raise wire.ProviderSilent(f"it answered {status}")
    reached(Boundary.BEFORE_REPORT, op.correlation_id)
    op.confirm(result_ref=str(thing["id"]))


def _more(job: Job) -> dict[str, str | None]:
    return {"run": f"{job.tenant}-desk", "step": job.step, "requested_by": job.requested_by}


def _not_done(error: LedgerError) -> Reply:
    state, reason = str(error.about.body.get("state", "")), error.about.reason or error.about.slug
    return Reply(said=_kind_of(error), state=state, reason=reason)


def _kind_of(error: LedgerError) -> Said:
    if isinstance(error, PendingReview):
        return Said.HELD
    if isinstance(error, DuplicateOperation):
        return Said.WAITS
    if isinstance(error, LedgerUnavailable):
        return Said.UNAVAILABLE
    return Said.REFUSED if error.about.slug else Said.CLOSED


def _say(reply: Reply) -> None:
    sys.stdout.write(json.dumps(reply.as_json()) + "\n")
    sys.stdout.flush()


def _stopping_at(boundary: Boundary | None) -> Reached:
    """Take no step past this boundary: say that it is reached, and wait to be killed."""

    def reached(here: Boundary, correlation_id: str) -> None:
        if here is boundary:
            _say(Reply(said=Said.AT_BOUNDARY, correlation_id=correlation_id))
            sys.stdin.readline()  # only its end ever comes: whoever started this is gone
            os._exit(1)  # no clean-up: dying here is the point

    return reached


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--provider", required=True, metavar="URL")
    provider_url: str = parser.parse_args(arguments).provider
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this
    ledger = Ledger.from_env()
    for line in sys.stdin:
        document: dict[str, Any] = json.loads(line)
        job = Job.from_json(document)
        _say(work(ledger, provider_url, job, _stopping_at(job.stop_at)))


if __name__ == "__main__":
    main()
