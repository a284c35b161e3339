from collections.abc import Iterator
from threading import Thread

import pytest

from ledger.client import Ledger
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
def ledger(fake: FakeLedger, waits: list[float]) -> Iterator[Ledger]:
    ledger = Ledger(fake.url, "ilk_id_secret_check", "worker-1", timeout=5)
    ledger._transport._sleep = waits.append
    yield ledger
    ledger.close()
