"""The clocks of the machine that an agent or a consumer runs on."""

import time

# It also counts the time a machine is asleep, in which a lease runs out. Linux has a clock of its own for
# that, since its monotonic one stands still meanwhile; elsewhere the monotonic one goes on.
_SPANS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall_clock_s() -> float:
    """Seconds since 1970: there is no ledger to ask when a message arrives."""
    return time.time()


def span_clock_s() -> float:
    """Seconds for spans, in which nobody sets the clock, and during which the machine may sleep."""
    return time.clock_gettime(_SPANS)
