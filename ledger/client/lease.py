"""What a block knows of its lease: whether it still has it, and how often to ask for more."""

import logging
from collections.abc import Callable

from ledger.client.answers import Leave, least_s
from ledger.client.errors import About, LeaseLost, LedgerError, LedgerUnavailable

PARTS, MOST_BETWEEN_S = 5, 12.0  # two missed beats, each as late as it may be, fit into one lease
MOST_MISSED = 2

log = logging.getLogger("ledger.client")


class Lease:
    """Once lost it stays lost, whatever is heard later: nothing that could still be sent is worth a doubt."""

    def __init__(self, leave: Leave, clock: Callable[[], float]) -> None:
        """`clock`: the one that `leave.ends_at_s` is a time of."""
        self.leave = leave
        self._clock = clock
        self._ends_at_s = leave.ends_at_s
        self._handed_out = False
        self.every_s = self.patience_s = pace_s(leave.lease_s)  # between two beats; for one answer
        self._missed = 0
        self._lost = ""

    @property
    def is_lost(self) -> bool:
        return bool(self._lost) or self._is_over()

    def hand_out(self) -> Leave:
        """The leave, for sending. Raises LeaseLost when it is lost; of a lease that is only over, what was
        handed out in time may be read again, since a report may want to name it."""
        if not self._handed_out:
            self.check_held()
            self._handed_out = True
        self._check_not_lost()
        return self.leave

    def extended(self, ends_at_s: float | None) -> None:
        """The ledger said so. Where it cannot be told until when, the end known before stands."""
        self._missed = 0
        if ends_at_s is not None:
            self._ends_at_s = ends_at_s

    def not_extended(self, error: Exception) -> None:
        """A heartbeat was refused, not answered or not made, which never means that the lease goes on."""
        self._missed += 1
        if not isinstance(error, LedgerUnavailable):
            self.lose(error.about.slug if isinstance(error, LedgerError) else type(error).__name__)
        elif self._missed >= MOST_MISSED:
            self.lose("it could not be lengthened in time")

    def lose(self, why: str) -> None:
        if not self._lost:
            self._lost = why
            log.warning("lease of attempt %s lost: %s; send nothing more", self.leave.attempt_id, why)

    def lost_by(self, why: str) -> LeaseLost:
        """It is lost from now on; the error that says so."""
        self.lose(why)
        return self._loss()

    def check_held(self) -> None:
        """Raise LeaseLost when nothing more may be sent: it is lost, or its time is over."""
        if self._is_over():
            self.lose("its time is over")
        self._check_not_lost()

    def _is_over(self) -> bool:
        return self._ends_at_s is not None and self._clock() >= self._ends_at_s

    def _check_not_lost(self) -> None:
        if self._lost:
            raise self._loss()

    def _loss(self) -> LeaseLost:
        about = About(
            operation_id=self.leave.operation_id,
            attempt_id=self.leave.attempt_id,
            slug="stale-lease",
            reason=self._lost,
        )
        return LeaseLost(
            f"The lease of operation {about.operation_id} is lost ({self._lost}). Send nothing more: another "
            "attempt may already be under way. What is known can still be reported. Do not call it again.",
            about,
            executed=True,
        )


def came_too_late(leave: Leave) -> LeaseLost:
    """For a leave whose time was over before anything could be sent."""
    return LeaseLost(
        f"This call was not executed: leave for operation {leave.operation_id} came when its time was over, "
        "so nothing was sent. Do not call it again now and do not do it by any other way. To learn the "
        "result, ask again later with the same operation key.",
        About(operation_id=leave.operation_id, attempt_id=leave.attempt_id, slug="stale-lease"),
    )


def pace_s(lease_s: float | None) -> float:
    """Seconds between heartbeats."""
    if lease_s is None:
        return MOST_BETWEEN_S
    return min(least_s(lease_s) / PARTS, MOST_BETWEEN_S)
