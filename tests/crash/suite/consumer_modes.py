"""How a consumer may treat one try, one word each. A word is used up by one request."""

from __future__ import annotations

REFUSALS = {
    "moved": (307, {"Location": "/elsewhere"}),
    "refused": (400, {}),
    "gone": (410, {}),
    "throttled": (429, {"Retry-After": "36000"}),
    "unavailable": (503, {}),
}
"""Nothing is applied, and this is answered."""

LOST = (
    "dies_in_work",  # killed in the middle of its transaction
    "dies_before_answer",  # applied, and killed
    "lost",  # applied, and the connection ends without an answer
    "reset",  # applied, and the connection is reset
    "server_error",  # applied, and the answer is 500
    "hang",  # applied, and nothing is answered until the ledger has given up
)
"""It is told again, and may have applied it."""

RECEIVED = (
    "honest",
    "slow",  # applied, and answered late
    "endless",  # applied; an answer of 2xx without an end
    "bomb",  # applied; an answer of 2xx that would be large once unpacked
    "acks_twice",  # explicit: acknowledged twice
    "no_ack",  # explicit: not acknowledged this time
    "dies",  # applied, answered and acknowledged, and killed
)
WORDS = (*REFUSALS, *LOST, *RECEIVED)
