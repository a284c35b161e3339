"""What a caller is told when something fails after its tool may have run."""

from types import TracebackType

from ledger.client.errors import About, LedgerError, LedgerUnavailable


class AfterSending:
    """Errors in here reach a caller whose tool may have run: their words must not deny that. A report that is
    kept on this machine is as good as delivered to the caller, who goes on with the result. `failing`: what
    the ledger could not do then."""

    def __init__(self, failing: str = "take its outcome") -> None:
        self._failing = failing

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, LedgerUnavailable) and error.about.kept:
            return True
        if isinstance(error, LedgerError) and not error.executed:
            raise type(error)(_words(self._failing, error.about), error.about, executed=True) from error
        return False


def _words(failing: str, about: About) -> str:
    then = "The report is kept and will be delivered" if about.kept else "It finds out by itself"
    return (
        f"This call may have been executed, but the ledger could not {failing} "
        f"({about.slug or about.reason}). {then}. Do not call it again."
    )


def class_of(error: BaseException) -> str:
    """The class of an error that the body was left by: timeout, reset or unknown."""
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return "timeout"
    return "reset" if isinstance(error, ConnectionError) else "unknown"
