"""Deliveries: what the end of a try means, when a destination rests, and the fold of a delivery's history."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from ledger.rules.backoff import DELIVERY_WAITS_S, delivery_wait_s
from ledger.rules.states import DELIVERY_MOVES, DeliveryState

LONGEST_RETRY_AFTER_S = 36_000.0
"""A consumer may ask for more; it is tried again after the longest wait of the schedule."""

MOST_TRIES = len(DELIVERY_WAITS_S)
"""That count by the schedule; what is due after them was never acknowledged."""

NOT_SENT_WAIT_S = 30.0
"""What we could not send for a fault of our own uses up no try, and is tried again this soon."""

FAILURES_BEFORE_REST = 5
REST_FIRST_S = 1.0
REST_MOST_S = 300.0
ONLY_FAILURES_S = 5 * 24 * 3600.0
"""A destination that only failed for so long is paused, and people are told elsewhere."""


class TryEnd(StrEnum):
    """How one try ended: its class of error, or `received`."""

    RECEIVED = "received"
    GONE = "gone"  # 410
    REDIRECT = "redirect"  # 3xx, never followed
    THROTTLED = "throttled"  # 429
    UNAVAILABLE = "unavailable"  # 5xx
    REFUSED = "refused"  # any other status
    NO_ANSWER = "no_answer"  # it may have been received
    NOT_CONNECTED = "not_connected"  # nothing was sent
    BLOCKED = "blocked_address"  # the address must not be dialled; nothing was sent
    NOT_SENT = "not_sent"  # our own fault, not the destination's: no usable secret, or its turn came too late


NOTHING_SENT = frozenset({TryEnd.NOT_CONNECTED, TryEnd.BLOCKED, TryEnd.NOT_SENT})


class DeadReason(StrEnum):
    """Why nobody tries a delivery any more."""

    TRIES_USED_UP = "tries_used_up"
    NOT_ACKNOWLEDGED = "not_acknowledged"
    BLOCKED_ADDRESS = "blocked_address"
    PERSON = "dead_lettered_by_person"


class PauseReason(StrEnum):
    """Why a destination is paused."""

    PERSON = "person"
    GONE = "gone"
    ONLY_FAILURES = "only_failures"


@dataclass(frozen=True)
class TryFacts:
    """What the end of a try is judged by. `tries` counts this one, since a person last had it redelivered (0:
    they did while it was under way); `ack_deadline_s` is None where a 2xx is the acknowledgement; `replay`: a
    person asked for it after the delivery had ended."""

    state: DeliveryState
    tries: int
    ack_deadline_s: float | None
    replay: bool = False


@dataclass(frozen=True)
class Follows:
    """What a try leads to. `acknowledged`: it is an acknowledgement itself; `wait_s`: seconds until the next
    one, None where none is due by itself; `held`: it waits for a person to resume its destination."""

    state: DeliveryState
    acknowledged: bool = False
    wait_s: float | None = None
    dead_reason: DeadReason | None = None
    held: bool = False


def end_of(status: int) -> TryEnd:
    """The class of an answer. 2xx is receipt, and nothing else is."""
    if 200 <= status < 300:
        return TryEnd.RECEIVED
    if 300 <= status < 400:
        return TryEnd.REDIRECT
    special = {410: TryEnd.GONE, 429: TryEnd.THROTTLED}
    return special.get(status, TryEnd.UNAVAILABLE if status >= 500 else TryEnd.REFUSED)


def after_try(facts: TryFacts, end: TryEnd, *, retry_after_s: float | None, roll: float) -> Follows:
    """The first row that holds decides. One that was ACKED meanwhile stays so, and only a copy that a person
    asked for is still sent; one that a person gave up meanwhile stays a dead letter, unless this try is its
    receipt."""
    if is_acknowledgement(end, explicit=facts.ack_deadline_s is not None):
        return Follows(DeliveryState.ACKED, acknowledged=True)
    if facts.state is DeliveryState.DEAD_LETTERED:
        return Follows(facts.state)
    if facts.state is DeliveryState.ACKED and not (end is TryEnd.NOT_SENT and facts.replay):
        return Follows(facts.state)
    if end is TryEnd.NOT_SENT:
        return Follows(facts.state, wait_s=NOT_SENT_WAIT_S * (0.5 + roll / 2))
    if end is TryEnd.BLOCKED:
        return Follows(DeliveryState.DEAD_LETTERED, dead_reason=DeadReason.BLOCKED_ADDRESS)
    if end is TryEnd.RECEIVED:
        return Follows(DeliveryState.SENT, wait_s=facts.ack_deadline_s)
    return _after_failure(facts, end, retry_after_s, roll)


def _after_failure(facts: TryFacts, end: TryEnd, retry_after_s: float | None, roll: float) -> Follows:
    wait_s = delivery_wait_s(facts.tries, roll=roll)
    if wait_s is None:
        return Follows(DeliveryState.DEAD_LETTERED, dead_reason=DeadReason.TRIES_USED_UP)
    waiting = facts.state if end in NOTHING_SENT else DeliveryState.SENT
    if end is TryEnd.GONE:
        return Follows(waiting, held=True)
    if end in {TryEnd.THROTTLED, TryEnd.UNAVAILABLE} and retry_after_s is not None:
        wait_s = max(wait_s, retry_after_s)
    return Follows(waiting, wait_s=wait_s)


def is_acknowledgement(end: TryEnd, *, explicit: bool) -> bool:
    """Is a 2xx all that is asked of the consumer?"""
    return end is TryEnd.RECEIVED and not explicit


def retry_after_s(text: str, now: datetime) -> float | None:
    """A `Retry-After` header as seconds from now, between 0 and ten hours; None where it cannot be read
    (RFC 9110, 10.2.3: whole seconds, or a date)."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:9]), LONGEST_RETRY_AFTER_S)
    try:
        wanted_s = (parsedate_to_datetime(text) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, wanted_s), LONGEST_RETRY_AFTER_S) if math.isfinite(wanted_s) else None


def counts_against_destination(end: TryEnd) -> bool:
    """Does this end speak of the destination itself? What we did not send does not."""
    return end not in {TryEnd.RECEIVED, TryEnd.NOT_SENT}


def rest_s(failures: int, *, roll: float) -> float:
    """How long a destination is left alone after so many failures in a row; between half and whole of
    1 s doubled by each further one, at most five minutes."""
    if failures < FAILURES_BEFORE_REST:
        return 0.0
    most_s = min(REST_MOST_S, REST_FIRST_S * 2.0 ** min(failures - FAILURES_BEFORE_REST, 30))
    return most_s * (0.5 + roll / 2)


def has_only_failed(failing_since: datetime | None, now: datetime) -> bool:
    """Has it failed, and nothing else, for five days?"""
    return failing_since is not None and (now - failing_since).total_seconds() >= ONLY_FAILURES_S


class Line(StrEnum):
    """What a delivery's history says of it."""

    SENT = "sent"
    ACKED = "acked"
    DEAD_LETTERED = "dead_lettered"
    REDELIVERED = "redelivered"


_LEADS_TO = {
    Line.SENT: DeliveryState.SENT,
    Line.ACKED: DeliveryState.ACKED,
    Line.DEAD_LETTERED: DeliveryState.DEAD_LETTERED,
    Line.REDELIVERED: DeliveryState.PENDING,
}


def state_after(lines: Iterable[Line]) -> DeliveryState | None:
    """The state that a delivery's events add up to, in their order; None where one could not follow. What is
    redelivered while it is no dead letter only gets a further try."""
    state = DeliveryState.PENDING
    for line in lines:
        if line is Line.REDELIVERED and state is not DeliveryState.DEAD_LETTERED:
            continue
        if (state, _LEADS_TO[line]) not in DELIVERY_MOVES:
            return None
        state = _LEADS_TO[line]
    return state
