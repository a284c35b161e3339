"""Fixtures that every test may ask for."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

from ledger.deliveries import stop_sending
from ledger.http import close_connections
from tests.support.consumer import ConsumerProcess
from tests.support.processes import RunningLedger


@receiver(connection_created)
def let_tests_empty_tables(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Between tests on real transactions tables are truncated, which append-only ones refuse otherwise."""
    with connection.cursor() as cursor:
        cursor.execute("SET ledger.allow_truncate = 'on'")


@pytest.fixture
def ledger_home_directory() -> Iterator[Path]:
    """A short-named directory for one home: pytest's own are too long for a socket."""
    with _home_directory() as directory:
        yield directory


@pytest.fixture
def running_ledger(ledger_home_directory: Path) -> Iterator[RunningLedger]:
    """The whole ledger as real processes of this test alone: durable, ready, yours to kill."""
    with _running(ledger_home_directory) as ledger:
        yield ledger


@pytest.fixture(scope="module")
def shared_ledger() -> Iterator[RunningLedger]:
    """One running ledger for the tests of a module, each of which leaves it ready again."""
    with _home_directory() as directory, _running(directory) as ledger:
        yield ledger


@pytest.fixture(scope="session")
def _running_consumer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsumerProcess]:
    with ConsumerProcess(tmp_path_factory.mktemp("consumer")) as running:
        yield running
        close_connections()


@pytest.fixture
def consumer(_running_consumer: ConsumerProcess) -> Iterator[ConsumerProcess]:
    """A consumer of results in a process of its own, which takes whatever it is sent."""
    _running_consumer.forget()
    _running_consumer.answer(200)
    yield _running_consumer
    stop_sending()


@contextmanager
def _home_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lh-", ignore_cleanup_errors=True) as directory:
        yield Path(directory) / "home"


@contextmanager
def _running(directory: Path) -> Iterator[RunningLedger]:
    ledger = RunningLedger(directory)
    try:
        ledger.start()
        yield ledger
    finally:
        ledger.kill_everything()
