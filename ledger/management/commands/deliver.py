"""`manage.py deliver --once`: send results to consumers; no broker needed."""

from ledger.deliveries import DeliverReport, deliver_once
from ledger.management.command import LoopCommand


class Command(LoopCommand):
    help = "One pass of deliveries that are due, or pass after pass without --once. It runs no tool."

    def one_pass(self) -> DeliverReport:
        return deliver_once()
