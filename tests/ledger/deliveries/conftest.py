"""A tenant that has something to tell."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ledger.deliveries import claiming, sender
from ledger.models import Destination
from tests.ledger.deliveries.helping import URL, destination
from tests.support.cast import Cast, cast


@pytest.fixture
def people() -> Cast:
    return cast()


@pytest.fixture
def books(people: Cast) -> Destination:
    """A consumer whose 2xx is its acknowledgement."""
    return destination(people, URL)[0]


@pytest.fixture(autouse=True)
def long_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test claims stays claimed for as long as it takes on a busy machine."""
    monkeypatch.setattr(claiming, "LEASE", timedelta(seconds=120))


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a busy machine cut short what a pass does before it sends; only the count of steps does."""
    monkeypatch.setattr(sender, "PREPARE_S", 60.0)
