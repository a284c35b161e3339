"""A vote is for exactly what it was given for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from ledger.rules.digest import vote_digest

BOUND: dict[str, Any] = {
    "tenant": "7",
    "operation": "op_1",
    "attempt": "att_1",
    "tool": "refund",
    "args_hash": "v1:sha256:aa",
    "rule_hash": "v1:sha256:bb",
    "scopes": ("tool:refund", "target:*"),
    "generation": 1,
    "approver": "user:5",
    "meaning": "Refund 12.5 EUR to Ada",
    "expires_at": datetime(2026, 8, 11, 10, tzinfo=UTC),
}
OTHER: dict[str, Any] = {
    "tenant": "8",
    "operation": "op_2",
    "attempt": "att_2",
    "tool": "refund ",
    "args_hash": "v1:sha256:ab",
    "rule_hash": "v1:sha256:bc",
    "scopes": ("tool:refund",),
    "generation": 2,
    "approver": "user:6",
    "meaning": "Refund 12.5 EUR to Bob",
    "expires_at": datetime(2026, 8, 11, 10, 0, 0, 1, tzinfo=UTC),
}


def test_a_digest_stays_what_it_was() -> None:
    """Approvals in the field are checked against it."""
    assert vote_digest(**BOUND) == (
        "v1:sha256:32ffc396c154ed80673571b264ad60ea3f04825fbc5daf73436d5106ed14f7a3"
    )


def test_every_bound_fact_changes_the_digest() -> None:
    digests = {vote_digest(**{**BOUND, name: value}) for name, value in OTHER.items()}
    assert len(digests | {vote_digest(**BOUND)}) == len(BOUND) + 1


def test_no_text_can_move_from_one_fact_into_another() -> None:
    moved = {**BOUND, "operation": "op_1att_1", "attempt": ""}
    assert vote_digest(**moved) != vote_digest(**BOUND)


def test_scopes_are_a_set_and_time_is_an_instant() -> None:
    there = timezone(timedelta(hours=2))
    same = {
        **BOUND,
        "scopes": ["target:*", "tool:refund", "target:*"],
        "expires_at": BOUND["expires_at"].astimezone(there),
    }
    assert vote_digest(**same) == vote_digest(**BOUND)


def test_a_time_without_an_offset_binds_nothing() -> None:
    with pytest.raises(ValueError, match="offset"):
        vote_digest(**{**BOUND, "expires_at": BOUND["expires_at"].replace(tzinfo=None)})
