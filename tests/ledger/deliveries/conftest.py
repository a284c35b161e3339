"""A tenant that has something to tell."""

from __future__ import annotations

import pytest

from tests.support.cast import Cast, cast


@pytest.fixture
def people() -> Cast:
    return cast()
