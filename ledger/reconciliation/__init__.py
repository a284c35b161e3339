"""Find out what became of attempts nobody has heard from, and send what the ledger itself sends. Safe to run
twice, at once, and killed anywhere."""

from ledger.providers.base import AdapterMisconfigured
from ledger.providers.registry import check_configuration
from ledger.reconciliation.resend import SendReport, send_once
from ledger.reconciliation.runner import ReconcileReport, reconcile_once
from ledger.reconciliation.sweep import SweepReport, sweep_once

__all__ = [
    "AdapterMisconfigured",
    "ReconcileReport",
    "SendReport",
    "SweepReport",
    "check_configuration",
    "reconcile_once",
    "send_once",
    "sweep_once",
]
