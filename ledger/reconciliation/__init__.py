"""Find out what became of attempts nobody has heard from. Safe to run twice, at once, and killed anywhere."""

from ledger.reconciliation.runner import ReconcileReport, reconcile_once
from ledger.reconciliation.sweep import SweepReport, sweep_once

__all__ = ["ReconcileReport", "SweepReport", "reconcile_once", "sweep_once"]
