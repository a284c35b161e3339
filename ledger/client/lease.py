"""What a block knows of its lease: whether it still has it, and how often to ask for more."""

import logging

from ledger.client.answers import Leave
from ledger.client.errors import About, LeaseLost, LedgerError, LedgerUnavailable

PARTS, MOST_BETWEEN_S = 5, 12.0  # two missed beats, each as late as it may be, fit into one lease
MOST_MISSED = 2

log = logging.getLogger("ledger.client")


class Lease:
    """Once lost it stays lost, whatever is heard later: nothing that could still be sent is worth a doubt."""

    def __init__(self, leave: Leave) -> None:
        self.leave = leave
        self.every_s = self.patience_s = pace_s(leave.lease_s)  # between two beats; for one answer
        self._missed = 0
        self._lost = ""

    @property
    def is_lost(self) -> bool:
        return bool(self._lost)

    def extended(self) -> None:
        self._missed = 0

    def not_extended(self, error: LedgerError) -> None:
        """A heartbeat was refused, or not answered, which never means that the lease goes on."""
        self._missed += 1
        if not isinstance(error, LedgerUnavailable):
            self.lose(error.about.slug)
        elif self._missed >= MOST_MISSED:
            self.lose("it could not be lengthened in time")

    def lose(self, why: str) -> None:
        if not self._lost:
            self._lost = why
            log.warning("lease of attempt %s lost: %s; send nothing more", self.leave.attempt_id, why)

    def check_held(self) -> None:
        """Raise LeaseLost when nothing more may be sent."""
        if self._lost:
            raise LeaseLost(
                f"The lease of operation {self.leave.operation_id} is lost ({self._lost}). Send nothing "
                "more: another attempt may already be under way. What is known can still be reported. "
                "Do not call it again.",
                About(
                    operation_id=self.leave.operation_id,
                    attempt_id=self.leave.attempt_id,
                    slug="stale-lease",
                    reason=self._lost,
                ),
                executed=True,
            )


def pace_s(lease_s: float | None) -> float:
    """Seconds between heartbeats. The ledger's Date is in whole seconds: a lease may be 1 s shorter."""
    if lease_s is None:
        return MOST_BETWEEN_S
    return min(max(lease_s - 1, lease_s / 2) / PARTS, MOST_BETWEEN_S)
