"""What an agent imports. No Django, no database: an address, a key, and four errors to handle."""

from ledger.client.agent import AsyncLedger, Ledger
from ledger.client.answers import Answer, Leave
from ledger.client.calls import Recovered
from ledger.client.delivery import Delivered
from ledger.client.errors import (
    AlreadyDone,
    DefiniteFailure,
    DuplicateOperation,
    LeaseLost,
    LedgerError,
    LedgerUnavailable,
    PendingReview,
    Refused,
    SentAgain,
)
from ledger.client.operation import AsyncOperation, Operation, current_async_operation, current_operation

__all__ = [
    "AlreadyDone",
    "Answer",
    "AsyncLedger",
    "AsyncOperation",
    "DefiniteFailure",
    "Delivered",
    "DuplicateOperation",
    "LeaseLost",
    "Leave",
    "Ledger",
    "LedgerError",
    "LedgerUnavailable",
    "Operation",
    "PendingReview",
    "Recovered",
    "Refused",
    "SentAgain",
    "current_async_operation",
    "current_operation",
]
