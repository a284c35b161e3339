"""One run: every check, then the effects once they have had time to appear, then the verdict."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ledger.client.conformance.bench import Bench
from ledger.client.conformance.checks import all_checks
from ledger.client.conformance.crashes import all_crashes
from ledger.client.conformance.effects import Effects, EffectsUnreadable
from ledger.client.conformance.findings import Check, Report
from ledger.client.conformance.messages import Signer
from ledger.client.conformance.wire import NO_ANSWER, ConsumerAway, Process, Wire

LOOK_EVERY_S = 0.1


def check_consumer(
    url: str,
    secret: str,
    *,
    effects: Effects | None = None,
    start: str = "",
    kills: int = 12,
    timeout_s: float = 30.0,
    settle_s: float = 3.0,
) -> Report:
    """Check the endpoint. `start` is a command that runs the consumer, which is killed `kills` times and a
    few more; `settle_s` is what a consumer that works later has for it. Raises ConsumerAway,
    EffectsUnreadable, and ValueError where the secret is none."""
    bench = Bench(Signer(secret), Wire(url, timeout_s=timeout_s), effects)
    with _running(start, url, timeout_s) as process:
        try:
            checks = _checked(bench)
            if effects is not None:
                _settled(checks, effects, settle_s)
            if process is not None and kills:
                checks += all_crashes(bench, process, kills=kills)
            if effects is not None:
                _judge(checks, effects, settle_s)
        finally:
            bench.wire.close()
        return Report(tuple(checks), effects is not None, process.killed if process and kills else 0)


@contextmanager
def _running(start: str, url: str, timeout_s: float) -> Iterator[Process | None]:
    if not start:
        yield None
        return
    process = Process(start, url, ready_s=timeout_s)
    try:
        process.start()
        yield process
    finally:
        process.close()


def _checked(bench: Bench) -> list[Check]:
    if bench.wire.post({}, b"") == NO_ANSWER:
        raise ConsumerAway(f"nothing answers at {bench.wire.url}")
    return list(all_checks(bench))


def _judge(checks: list[Check], effects: Effects, settle_s: float) -> None:
    try:
        applied = _settled(checks, effects, settle_s)
    except EffectsUnreadable as why:
        if not any(check.faults for check in checks):
            raise
        checks[-1].notes.append(f"the effects could not be read: {why}")
        return
    for check in checks:
        check.judge(applied)


def _settled(checks: list[Check], effects: Effects, settle_s: float) -> Mapping[str, int]:
    """The effects when all that is expected is there, or its time is over."""
    give_up_at = time.monotonic() + settle_s
    while _missing(checks, applied := effects.applied()) and time.monotonic() < give_up_at:
        time.sleep(LOOK_EVERY_S)
    return applied


def _missing(checks: list[Check], applied: Mapping[str, int]) -> bool:
    return any(applied.get(one.webhook_id, 0) < one.times for check in checks for one in check.expected)
