"""The icons of the pages, paths on a 16 × 16 grid drawn with one stroke, and the words they stand beside."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.rules.states import DeliveryState, State
from review.queries.destinations import Health

_CIRCLE = "M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13z"

PATHS: Mapping[str, str] = {
    "ledger": "M3 1.5h10v13H3z M6 1.5v13 M8.5 5h2.5 M8.5 8h2.5",
    "recorded": "M3.5 1.5h6l3 3v10h-9z M9.5 1.5v3h3",
    "sent": "M1.5 7.5l13-6-4.5 13-3-5.5z M7 9l7.5-7.5",
    "question": f"{_CIRCLE} M6 6.3a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.2v.2 M8 11.6v.1",
    "person": "M8 7.8a3 3 0 1 0 0-6 3 3 0 0 0 0 6z M2 14.5c.6-3 3-4.3 6-4.3s5.4 1.3 6 4.3",
    "again": "M13.6 8a5.6 5.6 0 1 1-1.9-4.2 M13.6 1.3v3.2h-3.2",
    "confirmed": f"{_CIRCLE} M5 8.2l2.1 2.1L11 6",
    "failed": f"{_CIRCLE} M5.7 5.7l4.6 4.6 M10.3 5.7l-4.6 4.6",
    "cancelled": f"{_CIRCLE} M3.4 3.4l9.2 9.2",
    "superseded": "M2.5 3v4.5a2 2 0 0 0 2 2h9 M10.5 6.5l3 3-3 3",
    "check": "M2.5 8.5l3.5 3.5 7.5-8",
    "cross": "M3.5 3.5l9 9 M12.5 3.5l-9 9",
    "copy": "M5.5 5.5h8v8h-8z M10.5 5.5v-3h-8v8h3",
    "clock": f"{_CIRCLE} M8 4.5V8l2.5 1.5",
    "warning": "M8 1.8l6.6 12H1.4z M8 6.3v3.4 M8 11.7v.1",
    "parked": "M2 6l6-4 6 4v8.5H2z M5.5 14.5V9h5v5.5",
    "pause": "M4 2.5h2.5v11H4z M9.5 2.5H12v11H9.5z",
    "lock": "M3 7h10v7.5H3z M5 7V4.5a3 3 0 0 1 6 0V7",
}

STATE_ICONS: Mapping[State, str] = {
    State.INTENT_RECORDED: "recorded",
    State.DISPATCHED: "sent",
    State.UNKNOWN: "question",
    State.MANUAL_REVIEW: "person",
    State.FAILED_RETRYABLE: "again",
    State.OUTCOME_CONFIRMED: "confirmed",
    State.FAILED: "failed",
    State.CANCELLED: "cancelled",
    State.SUPERSEDED: "superseded",
}

STATE_WORDS: Mapping[State, str] = {
    State.INTENT_RECORDED: "Intent recorded",
    State.DISPATCHED: "Dispatched",
    State.UNKNOWN: "Unknown",
    State.MANUAL_REVIEW: "Manual review",
    State.FAILED_RETRYABLE: "Failed, no effect",
    State.OUTCOME_CONFIRMED: "Confirmed",
    State.FAILED: "Failed",
    State.CANCELLED: "Cancelled",
    State.SUPERSEDED: "Superseded",
}

STATE_MEANINGS: Mapping[State, str] = {
    State.INTENT_RECORDED: "Stored with its arguments; nothing was sent.",
    State.DISPATCHED: "Leave to send was given; the request may be out.",
    State.UNKNOWN: "Contact was lost after leave. Not a failure, and no permission to send again: the "
    "outcome is being found out.",
    State.MANUAL_REVIEW: "Only a person may decide.",
    State.FAILED_RETRYABLE: "Proven to have had no effect; may be sent again under the same key.",
    State.OUTCOME_CONFIRMED: "Happened, with evidence: a receipt, a look-up, or a person's reference.",
    State.FAILED: "Did not happen, and is closed for ever.",
    State.CANCELLED: "Withdrawn before anything was sent.",
    State.SUPERSEDED: "Replaced by the next attempt, or relinked.",
}

DELIVERY_ICONS: Mapping[DeliveryState, str] = {
    DeliveryState.PENDING: "clock",
    DeliveryState.SENT: "sent",
    DeliveryState.ACKED: "confirmed",
    DeliveryState.DEAD_LETTERED: "failed",
}

DELIVERY_WORDS: Mapping[DeliveryState, str] = {
    DeliveryState.PENDING: "Pending",
    DeliveryState.SENT: "Sent, not acked",
    DeliveryState.ACKED: "Acked",
    DeliveryState.DEAD_LETTERED: "Dead-lettered",
}

DELIVERY_MEANINGS: Mapping[DeliveryState, str] = {
    DeliveryState.PENDING: "Stored for this destination; nothing has reached it.",
    DeliveryState.SENT: "It may have been received; nobody has acknowledged it yet.",
    DeliveryState.ACKED: "The consumer has it and said so.",
    DeliveryState.DEAD_LETTERED: "Nobody tries it any more until a person redelivers it. No tool runs again.",
}

HEALTH_ICONS: Mapping[Health, str] = {
    Health.WELL: "confirmed",
    Health.FAILING: "warning",
    Health.RESTING: "clock",
    Health.PAUSED: "pause",
}

HEALTH_WORDS: Mapping[Health, str] = {
    Health.WELL: "Well",
    Health.FAILING: "Failing",
    Health.RESTING: "Rests after failures",
    Health.PAUSED: "Paused",
}
