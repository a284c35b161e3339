"""Arguments are rendered from the stored bytes, and compared by field."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ledger.models import Attempt
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.masks import MASKED
from ledger.rules.policy import Rule
from ledger.rules.vocabulary import Effect
from review.queries.arguments import INLINE_BYTES, arguments_of, changes_between, compared, indented
from review.queries.page import DiffSide, FieldChange

RULE = Rule(Effect.MESSAGE)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.text(), values, max_size=4)


def attempt(args: dict[str, Any] | None, number: int = 1) -> Attempt:
    raw = None if args is None else canonical_bytes(args)
    return Attempt(
        pk=f"att_{number}", number=number, args_bytes=raw, args=args, args_hash=content_hash(raw or b"?")
    )


@given(documents)
def test_the_rendering_means_what_the_bytes_mean(document: dict[str, Any]) -> None:
    stored = canonical_bytes(document).decode()
    assert json.loads(indented(stored)) == json.loads(stored)


@given(documents)
def test_the_rendering_adds_white_space_between_tokens_only(document: dict[str, Any]) -> None:
    stored = canonical_bytes(document)
    assert canonical_bytes(json.loads(indented(stored.decode()))) == stored


def test_a_rendering() -> None:
    assert indented('{"a":[1,{"b":"x{,}"}],"c":{}}') == (
        '{\n  "a": [\n    1,\n    {\n      "b": "x{,}"\n    }\n  ],\n  "c": {}\n}'
    )


def test_the_server_says_whether_bytes_match() -> None:
    right = attempt({"to": "Ada"})
    assert arguments_of(right, RULE).matches_hash is True
    right.args_bytes = canonical_bytes({"to": "Eve"})
    assert arguments_of(right, RULE).matches_hash is False


def test_a_hash_alone_has_nothing_to_compare() -> None:
    shown = arguments_of(attempt(None), RULE)
    assert (shown.known, shown.text, shown.matches_hash) == (False, "", None)


def test_long_arguments_open_in_full() -> None:
    long = attempt({"pad": "x" * INLINE_BYTES, "to": "Ada"})
    assert (arguments_of(long, RULE).open_in_full, arguments_of(long, RULE).text) == (True, "")
    assert '"to": "Ada"' in arguments_of(long, RULE, in_full=True).text


def test_masked_values_are_hidden_everywhere() -> None:
    rule = Rule(Effect.PAYMENT, mask=("/card/number", "/list/0", "/gone"))
    secret = attempt({"card": {"number": "4242", "name": "Ada"}, "list": ["4242", 1]})
    shown = arguments_of(secret, rule)
    assert "4242" not in shown.text
    assert "Ada" in shown.text
    assert shown.masked == ("/card/number", "/list/0")
    changed = compared(secret, attempt({"card": {"number": "1111", "name": "Ada"}}, 2), rule.mask)
    assert FieldChange("/card/number", MASKED, MASKED) in changed.changes


def test_changes_name_the_field_and_both_sides() -> None:
    before = {"amount": 1, "to": {"name": "Ada"}, "gone": []}
    after = {"amount": 1.5, "to": {"name": "Ada", "new~/": True}}
    assert changes_between(before, after) == (
        FieldChange("/amount", "1", "1.5"),
        FieldChange("/gone", "[]", None),
        FieldChange("/to/new~0~1", None, "true"),
    )


def test_the_server_says_same_or_different() -> None:
    one, two = attempt({"a": 1}), attempt({"a": 2}, 2)
    assert compared(one, one, ()).verdict is DiffSide.SAME
    assert compared(one, two, ()).verdict is DiffSide.DIFFERENT
    assert compared(one, attempt(None, 3), ()).verdict is DiffSide.UNKNOWN


@given(documents)
def test_equal_documents_have_no_changes(document: dict[str, Any]) -> None:
    assert changes_between(document, json.loads(canonical_bytes(document))) == ()
