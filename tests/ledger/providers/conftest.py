from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.http import close_connections
from ledger.providers import pace
from tests.support import localstripe
from tests.support.localstripe import LocalStripe
from tests.support.mailserver import MailServer
from tests.support.provider import ProviderProcess

pytest.register_assert_rewrite("tests.ledger.providers.contract")

TOKEN = "provider-secret"


@pytest.fixture(autouse=True)
def _nobody_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """One test's 429 does not silence the next test's provider."""
    monkeypatch.setattr(pace, "_free_at", {})


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    with ProviderProcess(tmp_path_factory.mktemp("provider"), token=TOKEN) as process:
        yield process
        close_connections()


@pytest.fixture
def provider(running: ProviderProcess, monkeypatch: pytest.MonkeyPatch) -> ProviderProcess:
    """A provider that behaves, until a test asks it not to."""
    monkeypatch.setenv("PROVIDER_DEMO_TOKEN", TOKEN)
    running.set_mode("honest")
    return running


@pytest.fixture(scope="module")
def _localstripe() -> Iterator[LocalStripe]:
    with LocalStripe() as running:
        yield running
        close_connections()


@pytest.fixture
def stripe(_localstripe: LocalStripe, monkeypatch: pytest.MonkeyPatch) -> LocalStripe:
    """localstripe with nothing in it, and the ledger knowing the key to it."""
    _localstripe.forget_everything()
    monkeypatch.setenv("PROVIDER_STRIPE_KEY", localstripe.SECRET)
    return _localstripe


@pytest.fixture
def mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    """A mail server whose sent mail the ledger may read."""
    with MailServer(tmp_path / "mail") as server:
        monkeypatch.setenv("PROVIDER_MAIL_SENT", str(server.sent))
        yield server
