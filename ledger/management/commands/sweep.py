"""`manage.py sweep --once`: send leases that ran out become questions, and what is overdue ends."""

from ledger.management.command import LoopCommand
from ledger.reconciliation import SweepReport, sweep_once


class Command(LoopCommand):
    help = "One pass of what the worker does about leases and deadlines, or pass after pass without --once."

    def one_pass(self) -> SweepReport:
        return sweep_once()
