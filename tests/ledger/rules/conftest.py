"""Property tests here are pure and quick; a slow machine is no failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("rules", deadline=None, max_examples=150, database=None)
settings.load_profile("rules")
