"""Not faster than a provider allows: one clock per host for all threads of this process."""

from __future__ import annotations

import threading
import time

_lock = threading.Lock()
_free_at: dict[str, float] = {}


def pace(host: str, rate_per_s: float) -> None:
    """Wait for this host's next turn."""
    with _lock:
        now = time.monotonic()
        turn = max(now, _free_at.get(host, 0.0))
        _free_at[host] = turn + 1 / rate_per_s
    time.sleep(turn - now)
