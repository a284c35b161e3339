"""What an agent has to handle. The messages are written for the model that called the tool to read.

Four errors, one base: `PendingReview`, `DuplicateOperation`, `Refused`, `LedgerUnavailable`. Beside them
`DefiniteFailure`, which the agent raises, and `AlreadyDone`, which leaves a block that must not run again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NO_EFFECT_CLASSES = frozenset({"validation", "declined", "refused", "not_connected"})


@dataclass(frozen=True, kw_only=True)
class About:
    """What an error is about, as far as the ledger said it."""

    operation_id: str = ""
    attempt_id: str = ""
    slug: str = ""  # last part of the problem's type, or empty
    reason: str = ""
    review_url: str = ""
    retry_after_s: float | None = None
    status: int = 0  # of the HTTP answer; 0 where there was none
    kept: bool = False  # the report is on this machine's disk and will be delivered
    body: Mapping[str, Any] = field(default_factory=dict)


class LedgerError(Exception):
    """Base of what the client raises. `executed` is False while the caller's tool was not called."""

    def __init__(self, message: str, about: About | None = None, *, executed: bool = False) -> None:
        super().__init__(message)
        self.about = about or About()
        self.executed = executed

    @property
    def operation_id(self) -> str:
        return self.about.operation_id

    @property
    def review_url(self) -> str:
        return self.about.review_url

    @property
    def retry_after_s(self) -> float | None:
        return self.about.retry_after_s


class PendingReview(LedgerError):
    """Not executed: a person decides first."""


class DuplicateOperation(LedgerError):
    """Not executed: the same operation is on its way, or the ledger is finding out what became of it."""


class LeaseLost(DuplicateOperation):
    """The lease of a block is gone: nothing more may be sent. What is known may still be reported."""


class Refused(LedgerError):
    """Not executed: this may not be done, or did not happen and is closed."""


class SentAgain(LedgerError):
    """The block of an operation that was already done sent it once more, and confirmed another result."""


class LedgerUnavailable(LedgerError):
    """No answer that can be relied on. `executed` says whether the tool may have been called by then."""


class DefiniteFailure(Exception):
    """Raise it inside the block when it is certain that nothing happened.

    `error_class` is validation, declined, refused or not_connected; anything else is not proof (ValueError).
    """

    def __init__(self, error_class: str, message: str = "", *, retryable: bool = False) -> None:
        if error_class not in NO_EFFECT_CLASSES:
            raise ValueError(f"{error_class!r} proves nothing; one of {', '.join(sorted(NO_EFFECT_CLASSES))}")
        super().__init__(message or error_class)
        self.error_class = error_class
        self.message = message
        self.retryable = retryable


class AlreadyDone(BaseException):
    """Leaves the block of an operation that has already happened, before anything can be sent again.

    A `with` body cannot be skipped, so whatever is needed for sending raises this, and the block's own
    exit swallows it. It is no Exception, so that an `except Exception` in the block cannot go on and send.
    """

    def __init__(self, operation_id: str, result_ref: str | None) -> None:
        super().__init__(
            f"This call was not executed: operation {operation_id} has already happened, "
            f"with result {result_ref}. Use that result. Do not call it again."
        )
        self.operation_id = operation_id
        self.result_ref = result_ref
