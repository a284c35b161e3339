"""The clock of a provider key: until when a send with the same key is the same effect to the provider."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

WARNING_S = 600.0
"""So long before its end a window is closing; of a short one, only its second half is."""


class Protection(StrEnum):
    """Whether the provider would know a repeated send for what it is."""

    NOT_SENT = "not_sent"  # no send with this key is known of
    NO_KEYS = "no_keys"
    OPEN = "open"
    CLOSING = "closing"
    OVER = "over"


@dataclass(frozen=True)
class KeyWindow:
    """The window of one provider key, judged at one time. `generation`: which key of its operation it is.
    `closes_from` and `ends_at`: None where there is no window."""

    protection: Protection
    generation: int
    first_sent_at: datetime | None
    lasts_s: float
    closes_from: datetime | None = None
    ends_at: datetime | None = None

    @property
    def protects(self) -> bool:
        """Would a send now be no second effect?"""
        return self.protection in (Protection.OPEN, Protection.CLOSING)


def key_window(
    *, idempotent: bool, key_ttl_s: float, first_sent_at: datetime | None, generation: int, now: datetime
) -> KeyWindow:
    """The window that opened with the first send under this key and lasts `key_ttl_s`."""
    keeps_keys = idempotent and key_ttl_s > 0
    if first_sent_at is None or not keeps_keys:
        protection = Protection.NOT_SENT if keeps_keys else Protection.NO_KEYS
        return KeyWindow(protection, generation, first_sent_at, key_ttl_s if keeps_keys else 0.0)
    ends_at = first_sent_at + timedelta(seconds=key_ttl_s)
    closes_from = ends_at - timedelta(seconds=min(WARNING_S, key_ttl_s / 2))
    if now >= ends_at:
        protection = Protection.OVER
    else:
        protection = Protection.CLOSING if now >= closes_from else Protection.OPEN
    return KeyWindow(protection, generation, first_sent_at, key_ttl_s, closes_from, ends_at)
