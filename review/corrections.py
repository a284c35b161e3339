"""Corrected arguments before they are recorded: what would change."""

from __future__ import annotations

from ledger.models import User
from ledger.rules.canonical import MalformedJson, read_json
from review.decisions import ArgumentsUnreadable
from review.door import enter
from review.queries.arguments import changes_between
from review.queries.page import FieldChange
from review.queries.sentences import args_of, own_rule


def compare_arguments(user: User, item_id: str, *, typed: str) -> tuple[FieldChange, ...]:
    """The fields in which the typed arguments differ. Raises `NotVisible`, `ArgumentsUnreadable`."""
    attempt = enter(user, item_id).item.attempt
    try:
        after = read_json(typed.encode("utf-8", "surrogatepass"))
    except MalformedJson as error:
        raise ArgumentsUnreadable(error.detail, typed=typed) from None
    rule = own_rule(attempt)
    return changes_between(args_of(attempt) or {}, after, rule.mask if rule else ())
