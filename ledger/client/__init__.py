"""What an agent imports. No Django, no database: an address, a key, and four errors to handle."""

from ledger.client.agent import Ledger
from ledger.client.answers import Answer, Leave
from ledger.client.errors import (
    AlreadyDone,
    DefiniteFailure,
    DuplicateOperation,
    LedgerError,
    LedgerUnavailable,
    PendingReview,
    Refused,
)
from ledger.client.operation import Operation, current_operation

__all__ = [
    "AlreadyDone",
    "Answer",
    "DefiniteFailure",
    "DuplicateOperation",
    "Leave",
    "Ledger",
    "LedgerError",
    "LedgerUnavailable",
    "Operation",
    "PendingReview",
    "Refused",
    "current_operation",
]
