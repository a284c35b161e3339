"""How the simulated provider may behave, one word each. A word is used up by one request."""

from __future__ import annotations

SENDS = (
    "honest",
    "honest",
    "accept_then_drop",  # done, and the connection is cut without an answer
    "drop_before",  # not done, the connection is cut
    "slow",  # done, but only after the caller has given up
    "slow_answer",  # done at once, answered after the caller has given up
    "too_many_requests",
    "server_error",
    "accept_then_server_error",
    "stored_server_error",  # not done, and the same answer again to the same key
    "truncated",
    "declined",  # a definite no
    "accept_pending",  # done in the end: in progress until the quiet phase
    "accept_failed",  # taken, and failed there for good: no effect
    "accept_reversed",  # done, and undone
    "moved",
)
LOOK_UPS = (
    "honest",
    "lag",  # what was done cannot be seen yet
    "too_many_requests",
    "server_error",
    "not_json",
    "truncated",
    "not_found_for_forbidden",  # 404 although this key may not look
    "forbidden",
    "wrong_tenant",  # an empty list, and the canary of somebody else
    "several",
    "other_content",
    "endless_pages",
    "paged",  # what is wanted stands on the second page
    "unknown_word",
    "in_progress",
    "down",
    "hang",
    "moved",
)
