"""A tenant whose refunds the ledger itself sends, and the provider they go to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.http import close_connections
from ledger.providers import pace
from tests.ledger.reconciliation.desk import Desk
from tests.support.cast import cast
from tests.support.provider import ProviderProcess


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    with ProviderProcess(tmp_path_factory.mktemp("provider")) as process:
        yield process
        close_connections()


@pytest.fixture
def provider(running: ProviderProcess, monkeypatch: pytest.MonkeyPatch) -> ProviderProcess:
    monkeypatch.setattr(pace, "_free_at", {})
    running.set_mode("honest")
    return running


@pytest.fixture
def desk(db: None, provider: ProviderProcess, tmp_path: Path) -> Desk:
    return Desk(cast(), provider).prepare()
