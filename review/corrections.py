"""Corrected arguments before they are recorded: what would change."""

from __future__ import annotations

from ledger.models import User
from ledger.policies import rule_as_shown
from ledger.queries.arguments import stored_args
from review.decisions import read_typed
from review.door import enter
from review.queries.arguments import changes_between
from review.queries.page import FieldChange


def compare_arguments(user: User, item_id: str, *, typed: str) -> tuple[FieldChange, ...]:
    """The fields in which the typed arguments differ. Raises `NotVisible`, `ArgumentsUnreadable`."""
    attempt = enter(user, item_id).item.attempt
    return changes_between(stored_args(attempt) or {}, read_typed(typed), rule_as_shown(attempt).mask)
