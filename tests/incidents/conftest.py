"""One web server and one provider for all scenes; a new tenant for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from ledger.http import close_connections
from ledger.providers import pace
from tests.incidents.scene import Scene, opening
from tests.support.api import WebServer
from tests.support.beside import database_url_of_tests
from tests.support.cast import cast
from tests.support.provider import ProviderProcess


@pytest.fixture(scope="package")
def web_server(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebServer]:
    with django_db_blocker.unblock():
        url = database_url_of_tests()
    with WebServer(database_url=url, log=tmp_path_factory.mktemp("web") / "web.log") as running:
        yield running


@pytest.fixture(scope="package")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    with ProviderProcess(tmp_path_factory.mktemp("provider")) as running:
        yield running


@pytest.fixture
def scene(
    transactional_db: None,
    web_server: WebServer,
    provider: ProviderProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Scene]:
    """A tenant with an agent and a provider, everything committed, nothing done yet."""
    monkeypatch.setattr(pace, "_free_at", {})
    opened = opening(cast(), web_server, provider)
    yield opened
    opened.api.close()
    opened.stranger.close()
    close_connections()
