"""The clock of the machine that a consumer runs on: there is no ledger to ask when a message arrives."""

import time


def wall_clock_s() -> float:
    """Seconds since 1970."""
    return time.time()
