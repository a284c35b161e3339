"""What an agent holds: `Ledger`, or its twin `AsyncLedger`, with its block and its decorator."""

import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, ParamSpec, Self, TypeVar

from ledger.client.block import Block
from ledger.client.calls import NO_STATE_DIR, Calls
from ledger.client.intent import Intent
from ledger.client.io import AsyncIo, BlockingIo
from ledger.client.operation import AsyncOperation, Operation
from ledger.client.twins import Awaiting, Blocking

P = ParamSpec("P")
T = TypeVar("T")
B = TypeVar("B", bound=Block)
MOST_REFERENCE = 1000
Words = str | Callable[..., str] | None


class Agent(Calls, Generic[B]):
    """What both twins are."""

    block_kind: ClassVar[Any]

    @classmethod
    def from_env(cls) -> Self:
        """From LEDGER_URL, LEDGER_API_KEY and, where set, LEDGER_WORKER_ID and LEDGER_STATE_DIR. Raises
        ValueError."""
        missing = [name for name in ("LEDGER_URL", "LEDGER_API_KEY") if not os.environ.get(name)]
        if missing:
            raise ValueError(f"set {' and '.join(missing)} in the environment")
        return cls(
            os.environ["LEDGER_URL"],
            os.environ["LEDGER_API_KEY"],
            os.environ.get("LEDGER_WORKER_ID") or None,
            state_dir=os.environ.get("LEDGER_STATE_DIR") or None,
        )

    def operation(
        self,
        operation_key: str,
        *,
        tool: str,
        args: Mapping[str, Any],
        run: str | None = None,
        step: str | None = None,
        task_id: str | None = None,
        actor: str | None = None,
        requested_by: str | None = None,
        retry_of: str | None = None,
        expires_at: str | None = None,
    ) -> B:
        """One logical side effect, known for ever by `operation_key`. Enter it with `with` (`async with`)."""
        more = {
            "run": run,
            "step": step,
            "task_id": task_id,
            "actor": actor,
            "requested_by": requested_by,
            "retry_of": retry_of,
            "expires_at": expires_at,
        }
        block: B = self.block_kind(self, Intent(operation_key, tool, args, more))
        return block


class Ledger(Blocking, Agent[Operation]):
    """The ledger, as one agent's worker sees it.

        ledger = Ledger.from_env()
        with ledger.operation("invoice:7:send", tool="email.send", args=args) as op:
            receipt = mailer.send(op.args, idempotency_key=op.idempotency_key)
            op.confirm(result_ref=receipt.id)

    Posting the same operation again is always safe: after a restart, do exactly that.
    """

    io_kind = BlockingIo
    block_kind = Operation

    @classmethod
    def from_env(cls, *, recover: bool = False) -> Self:
        """As Agent.from_env. `recover`: clear up after the processes that died here now, instead of in the
        first block; needs LEDGER_STATE_DIR and a ledger that answers (else ValueError, LedgerUnavailable)."""
        ledger = super().from_env()
        if recover and not os.environ.get("LEDGER_STATE_DIR"):
            raise ValueError(NO_STATE_DIR)
        if recover:
            ledger.recover_at_start()
        return ledger

    def tool(
        self,
        name: str,
        *,
        key: Callable[..., str],
        run: Words = None,
        step: Words = None,
        result_ref: Callable[[Any], str | None] | None = None,
        keep_lease: bool = False,
    ) -> Callable[[Callable[P, Any]], Callable[P, str | None]]:
        """Run the function at most once per operation key; every call returns the operation's result_ref.

        `key`, and `run` and `step` where they are callable, get the call's arguments by name. The function is
        called with the arguments leave returned. `result_ref` finds the reference in what it returns; without
        it: a text itself, or its `id`. `current_operation()` is the operation inside it.
        """
        wish = _Wish(name, key, run, step, result_ref or reference_in, keep_lease)

        def decorate(function: Callable[P, Any]) -> Callable[P, str | None]:
            signature = _signature_of(function)

            @functools.wraps(function)
            def call(*args: P.args, **kwargs: P.kwargs) -> str | None:
                with wish.kept(self.operation(**wish.of_call(signature.bind(*args, **kwargs)))) as op:
                    op.confirm(result_ref=wish.reference(_called(function, op)))
                return op.result_ref

            return call

        return decorate


class AsyncLedger(Awaiting, Agent[AsyncOperation]):
    """The twin of Ledger for a running event loop: the same names, awaited.

    async with ledger.operation("invoice:7:send", tool="email.send", args=args) as op:
        receipt = await mailer.send(op.args, idempotency_key=op.idempotency_key)
        await op.confirm(result_ref=receipt.id)
    """

    io_kind = AsyncIo
    block_kind = AsyncOperation

    def tool(
        self,
        name: str,
        *,
        key: Callable[..., str],
        run: Words = None,
        step: Words = None,
        result_ref: Callable[[Any], str | None] | None = None,
        keep_lease: bool = False,
    ) -> Callable[[Callable[P, Awaitable[Any]]], Callable[P, Coroutine[Any, Any, str | None]]]:
        """As Ledger.tool, for a function that is awaited; `current_async_operation()` inside it."""
        wish = _Wish(name, key, run, step, result_ref or reference_in, keep_lease)

        def decorate(function: Callable[P, Awaitable[Any]]) -> Callable[P, Coroutine[Any, Any, str | None]]:
            signature = _signature_of(function)

            @functools.wraps(function)
            async def call(*args: P.args, **kwargs: P.kwargs) -> str | None:
                async with wish.kept(self.operation(**wish.of_call(signature.bind(*args, **kwargs)))) as op:
                    await op.confirm(result_ref=wish.reference(await _called(function, op)))
                return op.result_ref

            return call

        return decorate


@dataclass(frozen=True)
class _Wish:
    """What a decorator was told."""

    tool: str
    key: Callable[..., str]
    run: Words
    step: Words
    reference: Callable[[Any], str | None]
    keep_lease: bool

    def kept(self, block: B) -> B:
        return block.keeping_lease() if self.keep_lease else block

    def of_call(self, bound: inspect.BoundArguments) -> dict[str, Any]:
        """The operation of one call, as `operation` takes it."""
        named = _named(bound)
        return {
            "operation_key": self.key(**named),
            "tool": self.tool,
            "args": named,
            "run": _words(self.run, named),
            "step": _words(self.step, named),
        }


def reference_in(returned: Any) -> str | None:
    """The reference in what a tool returned: a text itself, or the `id` of a mapping or an object. None where
    that is none: the ledger takes 1 to 1,000 printable characters, and looks up what it was not told."""
    if not isinstance(returned, str):
        returned = returned.get("id") if isinstance(returned, Mapping) else getattr(returned, "id", None)
    if not isinstance(returned, str | int):
        return None
    reference = str(returned)
    return reference if reference.isprintable() and 0 < len(reference) <= MOST_REFERENCE else None


def _called(function: Callable[..., T], op: Block) -> T:
    """Called with the arguments of leave, which stand in for the caller's own."""
    return function(**op.args)


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    unnamed = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}
    if any(parameter.kind in unnamed for parameter in signature.parameters.values()):
        raise TypeError(f"{function.__qualname__} must take every argument by name: the ledger stores names")
    return signature


def _named(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Every argument by its name, defaults too: what is not recorded could change unseen."""
    bound.apply_defaults()
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            named |= value
        else:
            named[name] = value
    return named


def _words(given: Words, named: Mapping[str, Any]) -> str | None:
    return given(**named) if callable(given) else given
