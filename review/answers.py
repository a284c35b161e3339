"""What a press is answered with, for the pages: they know the ledger's verbs only through `review`."""

from __future__ import annotations

from ledger.lifecycle import Decided, DecisionRefused

__all__ = ["Decided", "DecisionRefused"]
