"""Scopes of a key and of an attempt: a new send never widens credentials."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.rules.pointers import glob_matches


def narrowed(attempt_scopes: Iterable[str], key_scopes: Iterable[str]) -> list[str]:
    """What both the attempt and the asking key may use, sorted: of two globs where one covers the other, the
    narrower; of two that only overlap, nothing (rather too little than too much)."""
    ours, theirs = set(attempt_scopes), set(key_scopes)
    kept = {mine for mine in ours if any(_covers(wide, mine) for wide in theirs)}
    kept |= {mine for mine in theirs if any(_covers(wide, mine) for wide in ours)}
    return sorted(kept)


def _covers(wide: str, narrow: str) -> bool:
    """A `*` of the wide glob takes whatever the narrow one has there; with a `?` only equal globs count."""
    return wide == narrow or ("?" not in wide and glob_matches(wide, narrow))
