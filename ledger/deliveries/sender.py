"""Send due deliveries: the process is kept busy, however many destinations are slow or hang.

1. A part of what time, pauses and plans have to change is done, however much there is.
2. As many are claimed as there are places; each destination has its own limit besides. A try that waits long
   for its consumer gives its place to another: waiting costs nothing but a thread.
3. Each is signed and posted once, outside any transaction.
4. How the tries ended is recorded by one thread, many to a transaction.

While a try goes on its lease is renewed. Killed after 2 or 3, the lease runs out and it is sent again under
the same webhook id.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from django.db import DatabaseError, close_old_connections, connection

from ledger.deliveries.claiming import RENEWED_EVERY_S, Claim, claim_due, renew
from ledger.deliveries.holding import end_unacknowledged, follow_pauses
from ledger.deliveries.posting import Posted, post
from ledger.deliveries.recording import Ended, record_ends
from ledger.deliveries.redelivering import run_plans
from ledger.deliveries.secrets import CannotUnseal, unsealed
from ledger.faults import fault_point
from ledger.pulses import beat
from ledger.rules.deliveries import TryEnd
from ledger.rules.webhooks import headers_of_delivery
from ledger.transactions import durable, monotonic_s

logger = logging.getLogger(__name__)

PLACES = 64
ENOUGH_PLACES, SOON_S = 16, 0.02
"""One claim of many costs hardly more than one of a single delivery, so it waits this long for places."""
MOST_UNDER_WAY = 128
"""As many destinations, by the places each has, may hang at once before they delay another."""
SLOW_AFTER_S = 1.0
PASS_S = 3.0
PREPARE_S, PREPARE_STEPS = 0.2, 100
"""What each of time, pauses and plans may take of a pass before it sends; the next pass goes on with them."""
LONGEST_LOOK_S = 0.2
RECORDED_AT_ONCE = 32


@dataclass
class DeliverReport:
    """What one pass did: tries begun, the states that ended ones led to, deliveries held, released or made
    due by a plan, ended without an acknowledgement, and whether more was due when it stopped."""

    tried: int = 0
    moved: int = 0
    not_acknowledged: int = 0
    more: bool = False
    states: Counter[str] = field(default_factory=Counter)


class Sender:
    """The threads of this process, and since when each try is under way in them."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._states: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(MOST_UNDER_WAY, thread_name_prefix="deliver")
        self._ended: queue.SimpleQueue[Ended | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._under_way: dict[int, tuple[Claim, float]] = {}
        self._closed = threading.Event()
        self._recorder = threading.Thread(target=self._record_until_closed, daemon=True)
        self._recorder.start()
        self._renewer = threading.Thread(target=self._renew_until_closed, daemon=True)
        self._renewer.start()

    @property
    def free(self) -> int:
        """How many more may be begun now."""
        with self._changed:
            return self._free()

    @property
    def is_idle(self) -> bool:
        with self._changed:
            return not self._under_way

    def _free(self) -> int:
        slow_since_s = monotonic_s() - SLOW_AFTER_S
        quick = sum(1 for _, began_s in self._under_way.values() if began_s > slow_since_s)
        return max(0, min(PLACES - quick, MOST_UNDER_WAY - len(self._under_way)))

    def recorded(self) -> Counter[str]:
        """The states that tries led to since this was last asked: each is told once, by whichever pass."""
        with self._changed:
            told, self._states = self._states, Counter()
        return told

    def start(self, claim: Claim) -> None:
        with self._changed:
            self._under_way[claim.try_id] = claim, monotonic_s()
        self._threads.submit(self._try, claim)

    def wait_for_places(self) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._free() >= ENOUGH_PLACES, timeout=SOON_S):
                self._changed.wait_for(lambda: self._free() > 0, timeout=LONGEST_LOOK_S)

    def wait_until_idle(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way)

    def wait_for_change(self, at_most_s: float) -> None:
        with self._changed:
            if self._under_way:
                self._changed.wait(timeout=at_most_s)

    def _try(self, claim: Claim) -> None:
        try:
            self._ended.put(send_once(claim))
        except BaseException:
            logger.exception("The try of delivery %s was lost; it is made again", claim.delivery_id)
            self._finished([claim])

    def close(self) -> None:
        """Finish what is under way and end the threads."""
        self._threads.shutdown()
        self._ended.put(None)
        self._recorder.join()
        self._closed.set()
        self._renewer.join()

    def _renew_until_closed(self) -> None:
        """One that could not be renewed may be sent twice, which a consumer must bear anyway."""
        while not self._closed.wait(RENEWED_EVERY_S):
            with self._changed:
                going_on = [claim for claim, _ in self._under_way.values()]
            if not going_on:
                continue
            try:
                close_old_connections()
                renew(going_on)
            except Exception:
                logger.exception("The leases of %s tries were not renewed", len(going_on))
                connection.close()
        connection.close()

    def _record_until_closed(self) -> None:
        while ended := self._next_ends():
            try:
                self._record(ended)
            except Exception:
                logger.exception("The ends of %s tries were not recorded", len(ended))
            finally:
                self._finished([one.claim for one in ended])
        connection.close()

    def _next_ends(self) -> list[Ended]:
        """What ended since, at least one; nothing once this is closed and all is recorded."""
        ended: list[Ended] = []
        while not ended or (len(ended) < RECORDED_AT_ONCE and not self._ended.empty()):
            one = self._ended.get()
            if one is None:
                self._ended.put(None)  # for the next look, once these are recorded
                break
            ended.append(one)
        return ended

    def _record(self, ended: list[Ended]) -> None:
        """All in one transaction; where that fails, each alone, so that one harms no other."""
        fault_point("delivery.sent")
        close_old_connections()
        try:
            states = durable(lambda: record_ends(ended)).values()
        except Exception:
            if len(ended) == 1:
                logger.exception("The end of a try of %s was not recorded", ended[0].claim.delivery_id)
                connection.close()
                return
            for one in ended:
                self._record([one])
            return
        with self._changed:
            self._states.update(states)

    def _finished(self, claims: list[Claim]) -> None:
        with self._changed:
            for claim in claims:
                self._under_way.pop(claim.try_id, None)
            self._changed.notify_all()


_sender_lock = threading.Lock()
_sender: Sender | None = None


def this_process() -> Sender:
    """The sender of this process: threads are never shared over a fork."""
    global _sender  # noqa: PLW0603
    with _sender_lock:
        if _sender is None or _sender.pid != os.getpid():
            _sender = Sender()
        return _sender


def stop_sending() -> None:
    """End this process's threads; the next pass starts new ones."""
    global _sender  # noqa: PLW0603
    with _sender_lock:
        if _sender is not None and _sender.pid == os.getpid():
            _sender.close()
        _sender = None


def deliver_once(*, pass_s: float = PASS_S, drain: bool = True) -> DeliverReport:
    """Send what is due for a few seconds. With `drain` it returns when all it began is recorded; without, a
    slow consumer's answer is recorded by this process later."""
    sender, report = this_process(), DeliverReport()
    report.not_acknowledged = _some(end_unacknowledged(), report)
    report.moved = _some(follow_pauses(), report) + _some(run_plans(), report)
    ends_at = monotonic_s() + pass_s
    while _claim_and_start(sender, report):
        if monotonic_s() >= ends_at:
            report.more = True
            break
    if drain:
        sender.wait_until_idle()
    report.states = sender.recorded()
    beat("deliver")
    return report


def _some(steps: Iterator[int], report: DeliverReport) -> int:
    """As many of these as a pass makes before it sends: what is due to others does not wait for all."""
    ends_at, changed = monotonic_s() + PREPARE_S, 0
    for made, of_step in enumerate(steps, 1):
        changed += of_step
        if made >= PREPARE_STEPS or monotonic_s() >= ends_at:
            report.more = True
            break
    return changed


def _claim_and_start(sender: Sender, report: DeliverReport) -> bool:
    """Fill the free places. False where nothing is due and nothing under way could make something due."""
    sender.wait_for_places()
    claims = claim_due(at_most=free) if (free := sender.free) else []
    for claim in claims:
        sender.start(claim)
    report.tried += len(claims)
    if claims or not free:
        return True
    idle = sender.is_idle
    sender.wait_for_change(LONGEST_LOOK_S)
    return not idle


def _is_still_ours(claim: Claim) -> bool:
    """Asked of the database by one that comes late: this process was stopped, or has much to do."""
    try:
        return bool(renew([claim]))
    except DatabaseError:
        logger.exception("Whether the lease of %s is held could not be read", claim.delivery_id)
        return False
    finally:
        connection.close()


def send_once(claim: Claim) -> Ended:
    """Post it once; whatever goes wrong is an end of the try, never an exception."""
    try:
        secrets = unsealed(claim.sealed)
    except CannotUnseal as why:
        return Ended(claim, Posted(TryEnd.NOT_SENT, detail=str(why)))
    fault_point("delivery.claimed")
    if monotonic_s() > claim.start_by_s and not _is_still_ours(claim):
        return Ended(claim, Posted(TryEnd.NOT_SENT, detail="its turn came too late"))
    signed = headers_of_delivery(
        claim.delivery_id,
        claim.webhook_id,
        at=claim.at,
        body=claim.body,
        secrets=secrets,
        replay=claim.replay,
    )
    return Ended(claim, post(claim.url, headers=signed, body=claim.body))
