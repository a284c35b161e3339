"""`manage.py reconcile --once`: ask providers what became of attempts nobody has heard from."""

from ledger.management.command import LoopCommand
from ledger.reconciliation import ReconcileReport, reconcile_once


class Command(LoopCommand):
    help = "One pass of look-ups that are due, or pass after pass without --once."

    def one_pass(self) -> ReconcileReport:
        return reconcile_once()
