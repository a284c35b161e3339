"""The client's two ways of reaching outside: in the calling thread, or on the running event loop."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import httpx

from ledger.client.clock import span_clock_s

T = TypeVar("T")


@dataclass(frozen=True)
class Address:
    """Where the ledger is, and the key for it; `timeout` is in seconds."""

    url: str
    api_key: str = field(repr=False)
    timeout: float

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(
                f"the ledger's address must begin with http:// or https://, not {self.url[:20]!r}"
            )
        if not self.api_key:
            raise ValueError("an API key is needed: create_agent_key prints one")

    def client_settings(self) -> dict[str, Any]:
        """No proxies or credentials from the environment: a key goes to this address and nowhere else."""
        return {
            "base_url": f"{self.url.rstrip('/')}/api/v1",
            "headers": {"Authorization": f"Bearer {self.api_key}", "Accept": "application/json"},
            "timeout": self.timeout,
            "trust_env": False,
            "follow_redirects": False,
        }


@dataclass(frozen=True)
class Request:
    """One request to the ledger; `timeout_s` where it is not to have the usual time, `wait_s` where the
    ledger may take so long to answer."""

    method: str
    path: str
    content: bytes | None = None
    timeout_s: float | None = None
    wait_s: int | None = None

    def settings(self) -> dict[str, Any]:
        headers = {} if self.content is None else {"Content-Type": "application/json"}
        if self.wait_s is not None:
            headers["Prefer"] = f"wait={self.wait_s}"
        timed = {} if self.timeout_s is None else {"timeout": self.timeout_s}
        return {"content": self.content, "headers": headers, **timed}


class Io(Protocol):
    """All that the client's verbs wait for."""

    async def send(self, request: Request) -> httpx.Response:
        """One try. Raises httpx.HTTPError where there is no answer."""

    async def pause(self, seconds: float) -> None: ...

    def monotonic_s(self) -> float:
        """For spans, asleep or not."""

    async def on_disk(self, work: Callable[[], T]) -> T: ...

    async def close(self) -> None: ...


class BlockingIo:
    """In the calling thread. Threads may share it; a forked process gets connections of its own."""

    def __init__(
        self,
        address: Address,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = span_clock_s,
    ) -> None:
        self._address = address
        self._sleep = sleep
        self._clock = clock
        self._http: httpx.Client | None = None
        self._opened_by = 0

    async def send(self, request: Request) -> httpx.Response:
        return self._client().request(request.method, request.path, **request.settings())

    async def pause(self, seconds: float) -> None:
        self._sleep(seconds)

    def monotonic_s(self) -> float:
        return self._clock()

    async def on_disk(self, work: Callable[[], T]) -> T:
        return work()

    async def close(self) -> None:
        if self._http is not None and self._opened_by == os.getpid():
            self._http.close()
        self._http = None

    def _client(self) -> httpx.Client:
        if self._http is None or self._opened_by != os.getpid():
            self._http, self._opened_by = httpx.Client(**self._address.client_settings()), os.getpid()
        return self._http


class AsyncIo:
    """On the running event loop. Tasks may share it; another loop, or a forked process, gets its own."""

    def __init__(
        self,
        address: Address,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = span_clock_s,
    ) -> None:
        self._address = address
        self._sleep = sleep
        self._clock = clock
        self._http: httpx.AsyncClient | None = None
        self._opened_by: tuple[int, asyncio.AbstractEventLoop] | None = None

    async def send(self, request: Request) -> httpx.Response:
        return await self._client().request(request.method, request.path, **request.settings())

    async def pause(self, seconds: float) -> None:
        await self._sleep(seconds)

    def monotonic_s(self) -> float:
        return self._clock()

    async def on_disk(self, work: Callable[[], T]) -> T:
        return await asyncio.shield(asyncio.to_thread(work))  # what is cancelled is written down all the same

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None and self._opened_by == _this_loop():
            await http.aclose()

    def _client(self) -> httpx.AsyncClient:
        if self._http is None or self._opened_by != _this_loop():
            self._http, self._opened_by = httpx.AsyncClient(**self._address.client_settings()), _this_loop()
        return self._http


def _this_loop() -> tuple[int, asyncio.AbstractEventLoop]:
    return os.getpid(), asyncio.get_running_loop()
