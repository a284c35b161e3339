"""One operation as a block of code: leave before the first line, the outcome reported when it is left."""

import contextlib
import copy
import secrets
import threading
from collections.abc import Iterator
from contextvars import ContextVar, Token
from typing import Any, Self

from ledger.client.after_sending import AfterSending, class_of
from ledger.client.amounts import Amounts
from ledger.client.answers import Answer, Leave, error_of, hash_of
from ledger.client.calls import Calls
from ledger.client.errors import (
    About,
    AlreadyDone,
    DefiniteFailure,
    DuplicateOperation,
    LedgerError,
    LedgerUnavailable,
    SentAgain,
)
from ledger.client.intent import Intent, strict
from ledger.client.lease import Lease, came_too_late
from ledger.client.twins import twin
from ledger.rules.canonical import is_content_hash

CHANGED_MEANWHILE = frozenset({"already-done", "illegal-transition"})
ENTERED_ONCE = "an operation is entered once; make a new one to ask again"


class Block:
    """Entered, it has leave to send `args` once, or it is `done`, or it has raised one of the four errors.

    The body of a `with` cannot be skipped, so when the operation is already done everything that sending
    needs (`args`, `idempotency_key`, …) raises AlreadyDone, which the exit of the block swallows. Ask `done`
    first where the code after it must know. Leaving without `confirm` or `fail` means the outcome is unknown.
    """

    def __init__(self, calls: Calls, intent: Intent) -> None:
        self._calls = calls
        self._intent = intent
        self._args = strict(intent.args)
        self._entering = threading.Lock()
        self._lease: Lease | None = None
        self._answer: Answer | None = None
        self._done = False
        self._reported = False
        self._unsaid: tuple[str, dict[str, Any]] | None = None
        self._result_ref: str | None = None
        self._kept = False
        self._keep_lease = False
        self._token: Token[Block | None] | None = None

    async def _enter(self) -> None:
        with self._alone():
            await Calls.catch_up(self._calls)
            await self._post_and_obey(leave_id=secrets.token_hex(16))
        self._token = CURRENT.set(self)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Whoever enters, enters first and alone: two tasks or threads with one leave would both send."""
        if not self._entering.acquire(blocking=False):
            raise RuntimeError(ENTERED_ONCE)
        try:
            if self._lease is not None or self._done:
                raise RuntimeError(ENTERED_ONCE)
            yield
        finally:
            self._entering.release()

    async def _exit(self, error: BaseException | None) -> bool:
        """Say what leaving by `error` means. True where the error has done its work and ends here."""
        self._no_longer_current()
        if self._done:
            return isinstance(error, AlreadyDone) and error.operation_id == self.operation_id
        if not self._reported:
            await self._report_what_is_left(error)
        return False

    def _no_longer_current(self) -> None:
        if self._token is not None:
            with contextlib.suppress(ValueError):  # a task may be closed from outside its own context
                CURRENT.reset(self._token)

    @twin
    async def wait(self, timeout: float) -> str:  # noqa: ASYNC109  (the name agents know it by)
        """Before the block is entered: post the intent, and let up to `timeout` seconds pass until there is
        something to do, while a person decides or the ledger finds out.

        Returns the directive as it then is: `dispatch`, `done` or `failed`; `hold`, `reconcile` or
        `in_flight` where the time was too short; raises Refused, and LedgerUnavailable where the ledger was
        away at the end. It permits nothing: the block asks for leave as always.
        """
        await Calls.catch_up(self._calls)
        return await Calls.wait(self._calls, self._post_intent, timeout)

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
        return self._lease.leave.attempt_id if self._lease else self._known().attempt_id

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

    @twin
    async def heartbeat(self) -> str:
        """Lengthen the lease of a long call. Returns `lease_until`; LeaseLost: send nothing more. Where the
        ledger is away (LedgerUnavailable) the lease goes on as long as it was."""
        lease = self._given_lease()
        until = lease.leave.lease_until
        with AfterSending("lengthen its lease"):
            try:
                until = await self._heartbeat(lease)
            except LedgerUnavailable:
                raise
            except LedgerError as error:
                raise lease.lost_by(error.about.slug) from error
        return until

    def keeping_lease(self) -> Self:
        """For a long block: lengthen the lease in the background until the block is left.

            with ledger.operation(…).keeping_lease() as op:

        When that is refused or not answered in time, all that sending needs raises LeaseLost.
        """
        self._keep_lease = True
        return self

    @property
    def lease_lost(self) -> bool:
        """Is the lease lost, or its time over? Then nothing more may be sent."""
        return self._lease is not None and self._lease.is_lost

    def check_lease(self) -> None:
        """Raise LeaseLost when the lease is lost, or its time is over. Ask before each request."""
        self._given_lease().check_held()

    @property
    def kept(self) -> bool:
        """Is the outcome only on this machine's disk for now? It is delivered as soon as it can be."""
        return self._kept

    @twin
    async def provider_request(self, provider_request_id: str) -> None:
        """Store the provider's id of the request, the moment it is known."""
        attempt_id = self._given_lease().leave.attempt_id
        with AfterSending():
            await Calls.report_provider_request(
                self._calls, attempt_id, provider_request_id, operation_key=self._intent.operation_key
            )

    @twin
    async def confirm(
        self,
        *,
        result_ref: str | None = None,
        provider_request_id: str | None = None,
        usage: Amounts | None = None,
    ) -> None:
        """It happened. Without a reference, or where the rule asks for it, the ledger looks it up first.

        Of an operation that was already done: the same result again is nothing new; another one is reported,
        for a person to decide, and raises `SentAgain`.
        """
        result_ref = None if result_ref is None else str(result_ref)  # a UUID or a number is one too
        if self._done:
            await self._confirm_again(result_ref, provider_request_id)
        await self._report(
            "succeeded", result_ref=result_ref, provider_request_id=provider_request_id, usage=usage
        )
        self._result_ref = self._known().result_ref or result_ref or provider_request_id

    @twin
    async def fail(
        self, error_class: str, message: str = "", *, no_effect: bool = True, retryable: bool = False
    ) -> None:
        """It failed. No effect is believed of validation, declined, refused and not_connected only."""
        await self._report(
            "failed", error_class=error_class, message=message, no_effect=no_effect, retryable=retryable
        )

    @twin
    async def unknown(self, message: str = "", *, error_class: str = "unknown") -> None:
        """Nobody here knows what became of it; the ledger finds out. The class: timeout, reset, unknown."""
        await self._report("unknown", error_class=error_class, message=message)

    async def _confirm_again(self, result_ref: str | None, provider_request_id: str | None) -> None:
        """The body sent from its own variables instead of `args`: a fact, and never a silent one."""
        reference = result_ref or provider_request_id
        if reference == self._result_ref:
            return
        await Calls.report_outcome(
            self._calls,
            self.attempt_id,
            "succeeded",
            result_ref=result_ref,
            provider_request_id=provider_request_id,
            operation_key=self._intent.operation_key,
        )
        raise SentAgain(
            f"Operation {self.operation_id} had already happened, with result {self._result_ref}, and this "
            f"program sent it again, with result {reference}. A person must look at it. Do not call it "
            "again.",
            About(operation_id=self.operation_id, attempt_id=self.attempt_id),
            executed=True,
        )

    async def _post_and_obey(self, *, leave_id: str) -> None:
        for _ in range(2):
            self._answer = answer = await self._post_intent()
            if answer.directive == "done":
                self._done, self._result_ref = True, answer.result_ref
                return
            if answer.directive != "dispatch":
                raise error_of(answer)
            try:
                leave = await self._leave_for(answer, leave_id)
            except DuplicateOperation as error:
                if error.about.slug not in CHANGED_MEANWHILE:
                    raise
                changed = error
            else:
                self._lease = await self._in_time(leave)
                return
        raise changed

    async def _in_time(self, leave: Leave) -> Lease:
        """Its lease. LeaseLost where that was over before it came: the body has not run, and will not."""
        lease = Lease(leave, self._calls.clock)
        if not lease.is_lost:
            return lease
        with contextlib.suppress(LedgerError):
            await Calls.report_outcome(
                self._calls,
                leave.attempt_id,
                "failed",
                no_effect=True,
                retryable=True,
                error_class="not_connected",
                message="leave came when its time was over; nothing was sent",
                operation_key=self._intent.operation_key,
            )
        raise came_too_late(leave)

    async def _post_intent(self) -> Answer:
        intent = self._intent
        return await Calls.post_intent(
            self._calls, intent.operation_key, tool=intent.tool, args=self._args, **intent.more
        )

    async def _leave_for(self, answer: Answer, leave_id: str) -> Leave:
        """Leave for our arguments, or for the stored ones where the ledger says a person corrected them."""
        try:
            return await self._ask_leave(answer.attempt_id, hash_of(self._args), leave_id)
        except LedgerError as error:
            stored = error.about.body.get("args")
            if error.about.slug != "args-changed" or not isinstance(stored, dict):
                raise
            return await self._ask_leave(answer.attempt_id, hash_of(stored), leave_id)

    async def _ask_leave(self, attempt_id: str, args_hash: str, leave_id: str) -> Leave:
        leave = await Calls.dispatch(self._calls, attempt_id, args_hash=args_hash, leave_id=leave_id)
        return self._checked(leave)

    def _checked(self, leave: Leave) -> Leave:
        if leave.operation_id != self.operation_id or not is_content_hash(leave.args_hash):
            raise LedgerUnavailable(
                "This call was not executed: the ledger gave leave for another operation than was asked for."
            )
        return leave

    async def _report_what_is_left(self, error: BaseException | None) -> None:
        """Say what leaving the block means. An error on its way out is never replaced by one of ours."""
        try:
            if self._unsaid is not None:
                await self._report(self._unsaid[0], **self._unsaid[1])
            elif isinstance(error, DefiniteFailure):
                await Block.fail(self, error.error_class, error.message, retryable=error.retryable)
            elif error is None:
                await Block.unknown(self, "the block was left without saying what happened")
            else:
                await Block.unknown(self, type(error).__name__, error_class=class_of(error))
        except LedgerError as unreported:
            if error is None:
                raise
            error.add_note(str(unreported))

    async def _report(self, outcome: str, **said: Any) -> None:
        attempt_id = self._given_lease().leave.attempt_id
        with AfterSending():
            self._reported = True  # from now on a heartbeat that is refused says nothing new
            try:
                answer = await Calls.report_outcome(
                    self._calls, attempt_id, outcome, operation_key=self._intent.operation_key, **said
                )
            except LedgerError as error:
                # it is kept, or may have arrived: a second, weaker report would only blur it
                self._kept = error.about.kept
                self._reported = self._kept or isinstance(error, LedgerUnavailable)
                raise
            except BaseException as error:
                # an error in what was to be said leaves the outcome unknown; whoever is cancelled meanwhile
                # knows it, and says it again on leaving
                self._reported = False
                self._unsaid = None if isinstance(error, Exception) else (outcome, said)
                raise
            self._answer = self._keeping_ids(answer)

    @property
    def _wants_keeper(self) -> bool:
        return self._keep_lease and self._lease is not None

    @property
    def _beat_every_s(self) -> float:
        return self._given_lease().every_s

    async def _beat(self) -> bool:
        """One heartbeat of the keeper; False when another would be of no use."""
        lease = self._given_lease()
        try:
            await self._heartbeat(lease, tries=1, timeout_s=lease.patience_s)
        except Exception as error:  # noqa: BLE001  (whatever it is, a keeper that dies must not go unseen)
            if not self._reported:
                lease.not_extended(error)
        return not (lease.is_lost or self._reported)

    async def _heartbeat(self, lease: Lease, **how: Any) -> str:
        leave = lease.leave
        said = await Calls.lengthen(self._calls, leave.attempt_id, lease_epoch=leave.lease_epoch, **how)
        lease.extended(said.ends_at_s)
        return said.lease_until

    def _keeping_ids(self, answer: Answer) -> Answer:
        """A parked fact is answered without ids; ours stay known."""
        return answer if answer.operation_id else self._known()

    def _sending(self) -> Leave:
        """The leave, for what sending needs."""
        return self._given_lease().hand_out()

    def _given_lease(self) -> Lease:
        """The lease, for what may be said however late."""
        if self._done:
            raise AlreadyDone(self.operation_id, self._result_ref)
        if self._lease is None:
            raise RuntimeError("no leave yet: this is known inside the with block only")
        return self._lease

    def _known(self) -> Answer:
        if self._answer is None:
            raise RuntimeError("nothing is known yet: enter the with block first")
        return self._answer


CURRENT: ContextVar[Block | None] = ContextVar("ledger_operation", default=None)
