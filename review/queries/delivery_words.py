"""Words for what happens to deliveries: never those of executing a tool."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.rules.deliveries import DeadReason, PauseReason, TryEnd

NEVER_TRIED = "never_tried"

END_WORDS: Mapping[str, str] = {
    TryEnd.RECEIVED: "Received (2xx)",
    TryEnd.GONE: "Gone (410)",
    TryEnd.REDIRECT: "Redirected, not followed (3xx)",
    TryEnd.THROTTLED: "Throttled (429)",
    TryEnd.UNAVAILABLE: "Unavailable (5xx)",
    TryEnd.REFUSED: "Refused",
    TryEnd.NO_ANSWER: "No answer: it may have been received",
    TryEnd.NOT_CONNECTED: "Not connected: nothing was sent",
    TryEnd.BLOCKED: "Address not allowed: nothing was sent",
    TryEnd.NOT_SENT: "Not sent by us",
    NEVER_TRIED: "Never tried",
}
"""How a try ended, by its class of error; by `last_end` of a delivery, "" being NEVER_TRIED."""

DEAD_WORDS: Mapping[str, str] = {
    DeadReason.TRIES_USED_UP: "All its tries are used up",
    DeadReason.NOT_ACKNOWLEDGED: "Received, and never acknowledged in time",
    DeadReason.BLOCKED_ADDRESS: "Its address must not be dialled",
    DeadReason.PERSON: "Dead-lettered by a person",
}

PAUSE_WORDS: Mapping[str, str] = {
    PauseReason.PERSON: "paused by a person",
    PauseReason.GONE: "paused: it answered 410 Gone",
    PauseReason.ONLY_FAILURES: "paused: nothing but failures for five days",
}

CHANGE_WORDS: Mapping[str, str] = {
    "added": "Added",
    "paused": "Paused",
    "resumed": "Resumed",
    "secret_rotated": "Secret rotated",
    "tested": "Test event sent",
}

ACK_WORDS: Mapping[str, str] = {"response": "its 2xx answer", "explicit": "its own call of the API"}


def end_words(last_end: str) -> str:
    return END_WORDS[last_end or NEVER_TRIED]
