"""`manage.py reconcile --once`: ask providers what became of attempts nobody has heard from, and send what is
the ledger's to send."""

from dataclasses import dataclass

from ledger.management.command import LoopCommand
from ledger.reconciliation import ReconcileReport, SendReport, reconcile_once, send_once


@dataclass
class RecoveryReport(SendReport, ReconcileReport):
    """What one pass of look-ups and one of the ledger's own sends did."""


class Command(LoopCommand):
    help = (
        "One pass of look-ups and of the ledger's own sends that are due, or pass after pass without --once."
    )

    def one_pass(self) -> RecoveryReport:
        looked_up, sent = reconcile_once(), send_once()
        both = vars(looked_up) | vars(sent)
        return RecoveryReport(**{**both, "more": looked_up.more or sent.more})
