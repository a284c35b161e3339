"""The asynchronous twin behind the blocking one's face, so that one set of tests holds for both."""

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any, Self

from ledger.client import AsyncLedger, AsyncOperation


class Driven:
    """Anything of the twin: what it would await is run to its end on one event loop."""

    def __init__(self, thing: Any, runner: asyncio.Runner) -> None:
        self._thing = thing
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._thing, name)
        return self._waited_for(value) if callable(value) else value

    def tool(self, *args: Any, **kwargs: Any) -> Any:
        """The twin's decorator, for a function that is not asynchronous."""
        decorate = self._thing.tool(*args, **kwargs)

        def driven_decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            async def awaited(**named: Any) -> Any:
                return function(**named)

            return self._waited_for(decorate(awaited))

        return driven_decorate

    def _waited_for(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*args: Any, **kwargs: Any) -> Any:
            got = call(*args, **kwargs)
            if inspect.iscoroutine(got):
                return self._runner.run(got)
            return DrivenOperation(got, self._runner) if isinstance(got, AsyncOperation) else got

        return wait


class DrivenOperation(Driven):
    """`with` stands for `async with`."""

    def __enter__(self) -> Self:
        self.__aenter__()
        return self

    def __exit__(self, *left_by: object) -> Any:
        return self.__aexit__(*left_by)


def driven(ledger: AsyncLedger, runner: asyncio.Runner) -> Any:
    return Driven(ledger, runner)
