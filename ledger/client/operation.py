"""The block as a thread enters it, and as a task does; each with the keeper of its lease."""

import asyncio
import threading
from types import TracebackType
from typing import NoReturn, Self

from ledger.client.block import CURRENT, Block
from ledger.client.twins import Awaiting, Blocking, finished


class Operation(Blocking, Block):
    """A block to be entered with `with`."""

    _stop: threading.Event | None = None
    _keeper: threading.Thread | None = None

    def __enter__(self) -> Self:
        finished(self._enter())
        if self._wants_keeper:
            self._stop = threading.Event()
            self._keeper = threading.Thread(target=self._keep, name="ledger-lease", daemon=True)
            self._keeper.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._stop is not None:
            self._stop.set()
        try:
            return finished(self._exit(error))
        finally:
            if self._keeper is not None:
                self._keeper.join()

    def _keep(self) -> None:
        while self._stop is not None and not self._stop.wait(self._beat_every_s):
            if not finished(self._beat()):
                return


class AsyncOperation(Awaiting, Block):
    """A block to be entered with `async with`."""

    _keeper: "asyncio.Task[None] | None" = None

    async def __aenter__(self) -> Self:
        await self._enter()
        if self._wants_keeper:
            self._keeper = asyncio.create_task(self._keep(), name="ledger-lease")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._keeper is not None:
            self._keeper.cancel()
        return await self._exit(error)

    async def _keep(self) -> None:
        going_on = True
        while going_on:
            await asyncio.sleep(self._beat_every_s)
            going_on = await self._beat()


def current_operation() -> Operation:
    """The operation whose block or decorated tool is running, for its idempotency key and correlation id."""
    operation = CURRENT.get()
    return operation if isinstance(operation, Operation) else _none()


def current_async_operation() -> AsyncOperation:
    """As current_operation, inside `async with` and asynchronous tools."""
    operation = CURRENT.get()
    return operation if isinstance(operation, AsyncOperation) else _none()


def _none() -> NoReturn:
    raise RuntimeError("no operation is running here: use ledger.operation(...) or @ledger.tool(...)")
