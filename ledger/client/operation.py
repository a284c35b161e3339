"""One operation as a block of code: leave before the first line, the outcome reported when it is left."""

import copy
import json
import secrets
from collections.abc import Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from ledger.client.answers import Answer, Leave, error_of, hash_of
from ledger.client.calls import Calls
from ledger.client.errors import (
    AlreadyDone,
    DefiniteFailure,
    DuplicateOperation,
    LedgerError,
    LedgerUnavailable,
)
from ledger.rules.canonical import is_content_hash, read_json

CHANGED_MEANWHILE = frozenset({"already-done", "illegal-transition"})


@dataclass(frozen=True)
class Intent:
    """What is meant to be done. `more`: run, step, task_id, actor, requested_by, retry_of, expires_at."""

    operation_key: str
    tool: str
    args: Mapping[str, Any]
    more: Mapping[str, str | None] = field(default_factory=dict)


def strict(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the ledger reads them. TypeError or ValueError for what is not strict JSON."""
    return read_json(json.dumps(args, allow_nan=False, ensure_ascii=False).encode())


class Operation:
    """Entered, it has leave to send `args` once, or it is `done`, or it has raised one of the four errors.

    The body of a `with` cannot be skipped, so when the operation is already done everything that sending
    needs (`args`, `idempotency_key`, …) raises AlreadyDone, which the exit of the block swallows. Ask `done`
    first where the code after it must know. Leaving without `confirm` or `fail` means the outcome is unknown.
    """

    def __init__(self, calls: Calls, intent: Intent) -> None:
        self._calls = calls
        self._intent = intent
        self._args = strict(intent.args)
        self._leave_id = secrets.token_hex(16)
        self._leave: Leave | None = None
        self._answer: Answer | None = None
        self._done = False
        self._reported = False
        self._result_ref: str | None = None
        self._token: Token[Operation | None] | None = None

    def __enter__(self) -> Self:
        if self._answer is not None:
            raise RuntimeError("an operation is entered once; make a new one to ask again")
        self._post_and_obey()
        self._token = CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._token is not None:
            CURRENT.reset(self._token)
        if self._done:
            return isinstance(error, AlreadyDone) and error.operation_id == self.operation_id
        if not self._reported:
            self._report_what_is_left(error)
        return False

    @property
    def done(self) -> bool:
        """Has it already happened? Then `result_ref` is its result and nothing may be sent."""
        return self._done

    @property
    def result_ref(self) -> str | None:
        return self._result_ref

    @property
    def operation_id(self) -> str:
        return self._known().operation_id

    @property
    def attempt_id(self) -> str:
        """The attempt that is being sent; of a done operation, the one that answers for it."""
        return self._leave.attempt_id if self._leave else self._known().attempt_id

    @property
    def state(self) -> str:
        """The attempt's state as last heard."""
        return self._known().state

    @property
    def args(self) -> dict[str, Any]:
        """What to send, and nothing else: a person may have corrected it. A copy, so it stays what it is."""
        return copy.deepcopy(dict(self._sending().args))

    @property
    def idempotency_key(self) -> str:
        """To be given to the provider as its idempotency key."""
        return self._sending().idempotency_key

    @property
    def correlation_id(self) -> str:
        """To be put into the provider's metadata, so that the request can be found again."""
        return self._sending().correlation_id

    @property
    def lease_until(self) -> str:
        return self._sending().lease_until

    def heartbeat(self) -> str:
        """Lengthen the lease of a long call. DuplicateOperation when it is lost: send nothing more then."""
        leave = self._sending()
        return self._calls.heartbeat(leave.attempt_id, lease_epoch=leave.lease_epoch)

    def provider_request(self, provider_request_id: str) -> None:
        """Store the provider's id of the request, the moment it is known."""
        attempt_id = self._sending().attempt_id
        with _AfterSending():
            self._calls.report_provider_request(attempt_id, provider_request_id)

    def confirm(
        self,
        *,
        result_ref: str | None = None,
        provider_request_id: str | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> None:
        """It happened. Without a reference, or where the rule asks for it, the ledger looks it up first."""
        self._report("succeeded", result_ref=result_ref, provider_request_id=provider_request_id, usage=usage)
        self._result_ref = self._known().result_ref or result_ref or provider_request_id

    def fail(
        self, error_class: str, message: str = "", *, no_effect: bool = True, retryable: bool = False
    ) -> None:
        """It failed. No effect is believed of validation, declined, refused and not_connected only."""
        self._report(
            "failed", error_class=error_class, message=message, no_effect=no_effect, retryable=retryable
        )

    def unknown(self, message: str = "", *, error_class: str = "unknown") -> None:
        """Nobody here knows what became of it; the ledger finds out. The class: timeout, reset, unknown."""
        self._report("unknown", error_class=error_class, message=message)

    def _post_and_obey(self) -> None:
        for _ in range(2):
            answer = self._calls.post_intent(
                self._intent.operation_key, tool=self._intent.tool, args=self._args, **self._intent.more
            )
            self._answer = answer
            if answer.directive == "done":
                self._done, self._result_ref = True, answer.result_ref
                return
            if answer.directive != "dispatch":
                raise error_of(answer)
            try:
                self._leave = self._leave_for(answer)
            except DuplicateOperation as error:
                if error.about.slug not in CHANGED_MEANWHILE:
                    raise
                changed = error
            else:
                return
        raise changed

    def _leave_for(self, answer: Answer) -> Leave:
        """Leave for our arguments, or for the stored ones where the ledger says a person corrected them."""
        try:
            return self._checked(self._ask_leave(answer.attempt_id, hash_of(self._args)))
        except LedgerError as error:
            stored = error.about.body.get("args")
            if error.about.slug != "args-changed" or not isinstance(stored, dict):
                raise
            return self._checked(self._ask_leave(answer.attempt_id, hash_of(stored)))

    def _ask_leave(self, attempt_id: str, args_hash: str) -> Leave:
        return self._calls.dispatch(attempt_id, args_hash=args_hash, leave_id=self._leave_id)

    def _checked(self, leave: Leave) -> Leave:
        if leave.operation_id != self.operation_id or not is_content_hash(leave.args_hash):
            raise LedgerUnavailable(
                "This call was not executed: the ledger gave leave for another operation than was asked for."
            )
        return leave

    def _report_what_is_left(self, error: BaseException | None) -> None:
        """Say what leaving the block means. An error on its way out is never replaced by one of ours."""
        try:
            if isinstance(error, DefiniteFailure):
                self.fail(error.error_class, error.message, retryable=error.retryable)
            elif error is None:
                self.unknown("the block was left without saying what happened")
            else:
                self.unknown(type(error).__name__, error_class=_class_of(error))
        except LedgerError as unreported:
            if error is None:
                raise
            error.add_note(str(unreported))

    def _report(self, outcome: str, **said: Any) -> None:
        attempt_id = self._sending().attempt_id
        with _AfterSending():
            try:
                self._answer = self._keeping_ids(self._calls.report_outcome(attempt_id, outcome, **said))
            except LedgerUnavailable:
                self._reported = True  # it may have arrived: a second, weaker report would only blur it
                raise
        self._reported = True

    def _keeping_ids(self, answer: Answer) -> Answer:
        """A parked fact is answered without ids; ours stay known."""
        return answer if answer.operation_id else self._known()

    def _sending(self) -> Leave:
        if self._done:
            raise AlreadyDone(self.operation_id, self._result_ref)
        if self._leave is None:
            raise RuntimeError("no leave yet: this is known inside the with block only")
        return self._leave

    def _known(self) -> Answer:
        if self._answer is None:
            raise RuntimeError("nothing is known yet: enter the with block first")
        return self._answer


class _AfterSending:
    """Errors in here reach a caller whose tool may have run: their words must not deny that."""

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, LedgerError) and not error.executed:
            raise type(error)(
                "This call may have been executed, but the ledger could not take its outcome "
                f"({error.about.slug or error.about.reason}). It finds out by itself. Do not call it again.",
                error.about,
                executed=True,
            ) from error


def _class_of(error: BaseException) -> str:
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return "timeout"
    return "reset" if isinstance(error, ConnectionError) else "unknown"


CURRENT: ContextVar[Operation | None] = ContextVar("ledger_operation", default=None)


def current_operation() -> Operation:
    """The operation whose block or decorated tool is running, for its idempotency key and correlation id."""
    operation = CURRENT.get()
    if operation is None:
        raise RuntimeError("no operation is running here: use ledger.operation(...) or @ledger.tool(...)")
    return operation
