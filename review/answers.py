"""What a press is answered with, for the pages: they know the ledger's verbs only through `review`."""

from __future__ import annotations

from ledger.lifecycle import Decided, DecisionRefused

__all__ = ["Decided", "DecisionRefused", "Refused"]


class Refused(Exception):
    """It cannot be done as things stand, or as it was asked for, in words for a person; `field` names what
    was typed wrong."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field
