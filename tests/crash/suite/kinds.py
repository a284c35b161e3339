"""What can be wrong with a schedule, as the table calls it."""

from __future__ import annotations

KINDS_OF_FAULT = {
    "effects": "effects > 1",
    "untrue": "outcomes that the provider denies",
    "lost": "lost acknowledgements",
    "stuck": "stuck",
    "twice": "applied twice by a consumer",
    "undelivered": "lost deliveries",
    "fsck": "fsck findings",
    "history": "histories that cannot be",
    "errors": "unplanned errors",
    "broken": "schedules that broke off",
}
