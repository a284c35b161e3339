"""`manage.py deliver --once`: send results to consumers; no broker needed."""

from typing import Any

from ledger.deliveries import DeliverReport, deliver_once, stop_sending
from ledger.management.command import Answer, LoopCommand


class Command(LoopCommand):
    help = "One pass of deliveries that are due, or pass after pass without --once. It runs no tool."

    drain = True

    def answer(self, *, once: bool, every: float, **options: Any) -> Answer:
        """In a loop no pass waits for the slowest consumer; at the end all that is under way is recorded."""
        self.drain = once
        try:
            return super().answer(once=once, every=every, **options)
        finally:
            stop_sending()

    def one_pass(self) -> DeliverReport:
        return deliver_once(drain=self.drain)
