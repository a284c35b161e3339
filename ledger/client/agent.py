"""What an agent holds: `Ledger`, with its block and its decorator."""

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Self

from ledger.client.calls import Calls
from ledger.client.operation import Intent, Operation

P = ParamSpec("P")
Words = str | Callable[..., str] | None


class Ledger(Calls):
    """The ledger, as one agent's worker sees it.

        ledger = Ledger.from_env()
        with ledger.operation("invoice:7:send", tool="email.send", args=args) as op:
            receipt = mailer.send(op.args, idempotency_key=op.idempotency_key)
            op.confirm(result_ref=receipt.id)

    Posting the same operation again is always safe: after a restart, do exactly that.
    """

    @classmethod
    def from_env(cls) -> Self:
        """From LEDGER_URL, LEDGER_API_KEY and, where it is set, LEDGER_WORKER_ID. Raises ValueError."""
        missing = [name for name in ("LEDGER_URL", "LEDGER_API_KEY") if not os.environ.get(name)]
        if missing:
            raise ValueError(f"set {' and '.join(missing)} in the environment")
        worker_id = os.environ.get("LEDGER_WORKER_ID") or None
        return cls(os.environ["LEDGER_URL"], os.environ["LEDGER_API_KEY"], worker_id)

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
    ) -> Operation:
        """One logical side effect, known for ever by `operation_key`. Enter it with `with`."""
        more = {
            "run": run,
            "step": step,
            "task_id": task_id,
            "actor": actor,
            "requested_by": requested_by,
            "retry_of": retry_of,
            "expires_at": expires_at,
        }
        return Operation(self, Intent(operation_key, tool, args, more))

    def tool(
        self,
        name: str,
        *,
        key: Callable[..., str],
        run: Words = None,
        step: Words = None,
        result_ref: Callable[[Any], str | None] | None = None,
    ) -> Callable[[Callable[P, Any]], Callable[P, str | None]]:
        """Run the function at most once per operation key; every call returns the operation's result_ref.

        `key`, and `run` and `step` where they are callable, get the call's arguments by name. The function is
        called with the arguments leave returned. `result_ref` finds the reference in what it returns; without
        it: a text itself, or its `id`. `current_operation()` is the operation inside it.
        """
        reference = result_ref or reference_in

        def decorate(function: Callable[P, Any]) -> Callable[P, str | None]:
            signature = _signature_of(function)

            @functools.wraps(function)
            def call(*args: P.args, **kwargs: P.kwargs) -> str | None:
                named = _named(signature.bind(*args, **kwargs))
                run_, step_ = _words(run, named), _words(step, named)
                with self.operation(key(**named), tool=name, args=named, run=run_, step=step_) as op:
                    returned = _call(function, op)
                    op.confirm(result_ref=reference(returned))
                return op.result_ref

            return call

        return decorate


def reference_in(returned: Any) -> str | None:
    """The reference in what a tool returned: a text itself, or the `id` of a mapping or an object."""
    if not isinstance(returned, str):
        returned = returned.get("id") if isinstance(returned, Mapping) else getattr(returned, "id", None)
    return str(returned) if isinstance(returned, str | int) and str(returned) else None


def _call(function: Callable[..., Any], op: Operation) -> Any:
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
