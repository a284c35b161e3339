"""The world of a crash test: the test database, spoken to by real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from ledger.http import close_connections
from tests.crash.world import World
from tests.support.api import WebServer
from tests.support.beside import database_url_of_tests
from tests.support.cast import cast
from tests.support.provider import ProviderProcess


@pytest.fixture(scope="package")
def web_server(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebServer]:
    """One web server for all of them: it is the agents and the reconcilers that are killed."""
    with django_db_blocker.unblock():
        url = database_url_of_tests()
    with WebServer(database_url=url, log=tmp_path_factory.mktemp("web") / "web.log") as running:
        yield running


@pytest.fixture
def world(transactional_db: None, web_server: WebServer, tmp_path: Path) -> Iterator[World]:
    """A new tenant and a new provider; afterwards the ledger is sound."""
    with ProviderProcess(tmp_path / "provider") as provider:
        made = World(cast(), web_server, provider, database_url_of_tests()).prepare()
        yield made
        made.check_sound()
        close_connections()
