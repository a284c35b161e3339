"""Find out what became of attempts nobody has heard from. Safe to run twice, at once, and killed anywhere."""

from ledger.providers.base import AdapterMisconfigured
from ledger.providers.registry import check_configuration
from ledger.reconciliation.runner import ReconcileReport, reconcile_once
from ledger.reconciliation.sweep import SweepReport, sweep_once

__all__ = [
    "AdapterMisconfigured",
    "ReconcileReport",
    "SweepReport",
    "check_configuration",
    "reconcile_once",
    "sweep_once",
]
