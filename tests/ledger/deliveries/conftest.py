"""A tenant that has something to tell."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ledger.deliveries import claiming
from tests.support.cast import Cast, cast


@pytest.fixture
def people() -> Cast:
    return cast()


@pytest.fixture(autouse=True)
def long_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test claims stays claimed for as long as it takes on a busy machine."""
    monkeypatch.setattr(claiming, "LEASE", timedelta(seconds=120))
