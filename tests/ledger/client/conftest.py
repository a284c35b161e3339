import asyncio
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from ledger.client import AsyncLedger, Ledger
from ledger.client.io import AsyncIo, BlockingIo
from tests.ledger.client.driven import driven
from tests.ledger.client.fake import FakeLedger


@pytest.fixture
def fake() -> Iterator[FakeLedger]:
    with FakeLedger() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def waits() -> list[float]:
    """How long the client would have waited before each repetition."""
    return []


@pytest.fixture
def blocking(fake: FakeLedger, waits: list[float]) -> Iterator[Ledger]:
    ledger = Ledger(fake.url, "ilk_id_secret_check", "worker-1", timeout=5)
    io = ledger._transport.io
    assert isinstance(io, BlockingIo)
    io._sleep = waits.append
    yield ledger
    ledger.close()


@pytest.fixture
def awaiting(fake: FakeLedger, waits: list[float]) -> AsyncLedger:
    """To be closed by whoever opened it."""
    ledger = AsyncLedger(fake.url, "ilk_id_secret_check", "worker-1", timeout=5)

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    io = ledger._transport.io
    assert isinstance(io, AsyncIo)
    io._sleep = wait
    return ledger


@pytest.fixture(params=["blocking", "awaiting"])
def ledger(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Each twin, in the face of the blocking one."""
    twin = request.getfixturevalue(request.param)
    if request.param == "blocking":
        yield twin
        return
    with asyncio.Runner() as runner:
        yield driven(twin, runner)
        runner.run(twin.close())
