"""The cast, for every test of the desk."""

from __future__ import annotations

import pytest

from tests.support.cast import Cast, cast


@pytest.fixture
def people(db: None) -> Cast:
    return cast()
