"""A tenant with destinations, and consumers that really receive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ledger.deliveries import stop_sending
from ledger.http import close_connections
from tests.support.cast import Cast, cast
from tests.support.consumer import ConsumerProcess


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsumerProcess]:
    with ConsumerProcess(tmp_path_factory.mktemp("consumer")) as process:
        yield process
        close_connections()


@pytest.fixture
def consumer(running: ConsumerProcess, settings: Any) -> Iterator[ConsumerProcess]:
    settings.LEDGER_PRIVATE_NETS = ("127.0.0.0/8",)
    settings.LEDGER_ALLOW_HTTP = True
    running.forget()
    running.answer(200)
    yield running
    stop_sending()


@pytest.fixture
def people() -> Cast:
    return cast()
