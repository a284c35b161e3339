"""A real web server on a database of its own: what it commits is committed, and no other test sees it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from pytest_django import DjangoDbBlocker

from tests.ledger.ingest.cast import Cast, new_cast
from tests.ledger.ingest.contract import Contract
from tests.support.api import Api, WebServer
from tests.support.beside import database_url_of_tests


@contextmanager
def _database_named(name: str) -> Iterator[None]:
    """Django's connection speaks to another database for a while."""
    usual = connection.settings_dict["NAME"]
    _speak_to(name)
    try:
        yield
    finally:
        _speak_to(usual)


def _speak_to(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
    # Their numbers differ from one database to the next, and Django remembers them by connection.
    ContentType.objects.clear_cache()


def _in_maintenance(sql: str) -> None:
    with _database_named("postgres"), connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.fixture(scope="session")
def own_database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """A migrated database, dropped at the end."""
    name = f"api_{secrets.token_hex(4)}"
    with django_db_blocker.unblock():
        _in_maintenance(f'CREATE DATABASE "{name}"')
        with _database_named(name):
            call_command("migrate", verbosity=0)
        yield name
        _in_maintenance(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="session")
def own_database_url(own_database: str, django_db_blocker: DjangoDbBlocker) -> str:
    with django_db_blocker.unblock(), _database_named(own_database):
        return database_url_of_tests()


@pytest.fixture(scope="session")
def server(own_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """The web server, started once."""
    log: Path = tmp_path_factory.mktemp("web") / "web.log"
    with WebServer(database_url=own_database_url, log=log) as running:
        yield running


@pytest.fixture
def same_database(own_database: str, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test reads and writes what the server reads and writes."""
    with django_db_blocker.unblock(), _database_named(own_database):
        yield


@pytest.fixture
def cast(same_database: None) -> Cast:
    return new_cast()


@pytest.fixture(scope="session")
def contract(server: WebServer) -> Contract:
    """The OpenAPI document the server serves."""
    return Contract.served_by(server.address)


@pytest.fixture
def api(server: WebServer, cast: Cast, contract: Contract) -> Iterator[Api]:
    """The API as an ordinary key of the tenant sees it. Each answer is held to the served document."""
    yield from _api(server, cast, contract)


@pytest.fixture
def stranger(server: WebServer, same_database: None, contract: Contract) -> Iterator[Api]:
    """The API as an ordinary key of another tenant sees it."""
    yield from _api(server, new_cast(), contract)


def _api(server: WebServer, cast: Cast, contract: Contract) -> Iterator[Api]:
    client = Api(server.address, cast.key()[0], look_at=contract.check)
    yield client
    client.close()
