"""Kill the consumer between its receipt and its answer, and at its answer; then send again, or do not."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from ledger.client.conformance.bench import Bench, is_2xx, told
from ledger.client.conformance.findings import Check, Fault
from ledger.client.conformance.messages import Message
from ledger.client.conformance.wire import ConsumerAway, Process

MEASURED = 3
TRIES, BETWEEN_TRIES_S = 3, 0.5

Crash = Callable[[Bench, Process, Check, int], None]


def all_crashes(bench: Bench, process: Process, *, kills: int) -> Iterator[Check]:
    for name, crash in CRASHES.items():
        check = Check(name)
        try:
            crash(bench, process, check, kills)
        except ConsumerAway as why:
            check.found(Fault.DID_NOT_RETURN, str(why))
            yield check
            return
        yield check


def before_the_answer(bench: Bench, process: Process, check: Check, kills: int) -> None:
    """Where it dies is spread evenly over the time that an answer takes; then the ledger's next try comes."""
    takes_s = _takes_s(bench, check)
    for number in range(kills):
        message = bench.signer.settlement()
        answered = _send_and_kill(bench, process, message, after_s=takes_s * (number + 0.5) / kills)
        check.sent += 1
        process.start()
        if is_2xx(answered):
            check.expect(message.webhook_id, 1, fewer=Fault.ANSWERED_EARLY)
        else:
            _send_again(bench, check, message)


def at_the_answer(bench: Bench, process: Process, check: Check, kills: int) -> None:
    """A 2xx ends the ledger's tries: what is not committed by then is lost for good."""
    for _ in range(max(1, kills // 3)):
        message = bench.signer.settlement()
        answered = bench.accepted(check, message, "before the kill")
        process.kill()
        process.start()
        if answered:
            check.expect(message.webhook_id, 1, fewer=Fault.ANSWERED_EARLY)


CRASHES: dict[str, Crash] = {
    "killed between receipt and answer, sent again": before_the_answer,
    "killed as its 2xx came": at_the_answer,
}


def _send_again(bench: Bench, check: Check, message: Message) -> None:
    """Until 2xx, as the ledger would: what the dead process held may be held a moment longer."""
    for _ in range(TRIES):
        if is_2xx(status := bench.send(check, message)):
            check.expect(message.webhook_id, 1, fewer=Fault.LOST, more=Fault.TWICE_AFTER_CRASH)
            return
        time.sleep(BETWEEN_TRIES_S)
    check.found(Fault.DID_NOT_RETURN, f"{TRIES} tries after the crash, the last: {told(status)}")


def _takes_s(bench: Bench, check: Check) -> float:
    for _ in range(MEASURED):
        message = bench.signer.settlement()
        if bench.accepted(check, message, "before any kill"):
            check.expect(message.webhook_id, 1, fewer=Fault.ANSWERED_EARLY)
    return median(bench.wire.took_s[-MEASURED:] or [0.05])


def _send_and_kill(bench: Bench, process: Process, message: Message, *, after_s: float) -> int:
    """The status that came before it died; NO_ANSWER where none did."""
    headers = bench.signer.headers(message)
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(bench.wire.post, headers, message.body)
        time.sleep(after_s)
        process.kill()
        return sending.result()
