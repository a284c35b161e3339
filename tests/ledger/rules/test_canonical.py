"""The strict reader against every hostile text of the safety page, and canonical bytes against RFC 8785."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.rules.canonical import (
    JsonTooLarge,
    MalformedJson,
    canonical_bytes,
    content_hash,
    is_content_hash,
    read_json,
)

SAFE = 2**53 - 1

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
numbers = st.integers(-SAFE, SAFE) | st.floats(-1e15, 1e15, allow_subnormal=True)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
documents = st.dictionaries(texts, values, max_size=5)


def nested(depth: int) -> bytes:
    """An object whose deepest value stands `depth` brackets deep."""
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


HOSTILE = {
    "NaN": (b'{"a":NaN}', "NaN is not a number at /a"),
    "Infinity": (b'{"a":[Infinity]}', "Infinity is not a number at /a/0"),
    "minus Infinity": (b'{"a":-Infinity}', "-Infinity is not a number at /a"),
    "beyond a double": (b'{"a":1e400}', "beyond 2^53-1 at /a"),
    "below a double": (b'{"a":1e-400}', "more digits than a double keeps at /a"),
    "absurd exponent": (b'{"a":1e-' + b"9" * 30 + b"}", "more digits than a double keeps"),
    "5,000 digits": (b'{"a":' + b"7" * 5_000 + b"}", "beyond 2^53-1 at /a"),
    "2^53": (b'{"a":9007199254740992}', "beyond 2^53-1 at /a"),
    "2^53+1": (b'{"a":9007199254740993}', "beyond 2^53-1 at /a"),
    "-(2^53)": (b'{"a":-9007199254740992}', "beyond 2^53-1 at /a"),
    "2^53+1 as decimal": (b'{"a":9007199254740993.0}', "beyond 2^53-1 at /a"),
    "1e16": (b'{"a":1e16}', "beyond 2^53-1 at /a"),
    "too many digits": (b'{"a":0.10000000000000001}', "more digits than a double keeps at /a"),
    "duplicate name": (b'{"a":{"b":1,"c":2,"b":1}}', "the name 'b' appears twice at /a"),
    "duplicate name, escaped": (b'{"a":1,"\\u0061":1}', "the name 'a' appears twice at the top level"),
    "NUL in a text": (b'{"a":"x\\u0000"}', "a NUL character at /a"),
    "NUL in a name": (b'{"x\\u0000":1}', "a NUL character at the top level"),
    "raw control character": (b'{"a":"\x01"}', "control character"),
    "lone high surrogate": (b'{"a":"\\ud800"}', "half of a surrogate pair at /a"),
    "lone low surrogate": (b'{"a":["\\udc00x"]}', "half of a surrogate pair at /a/0"),
    "surrogates swapped": (b'{"a":"\\udc00\\ud800"}', "half of a surrogate pair at /a"),
    "byte order mark": (b"\xef\xbb\xbf{}", "byte order mark"),
    "UTF-16 with a mark": ("{}".encode("utf-16"), "not UTF-8 at byte 0"),
    "UTF-16 without": ("{}".encode("utf-16-le"), "at character 1"),
    "overlong NUL": (b'{"a":"\xc0\x80"}', "not UTF-8 at byte 6"),
    "surrogate in UTF-8": (b'{"a":"\xed\xa0\x80"}', "not UTF-8 at byte 6"),
    "depth 33": (nested(33), "nested deeper than 32"),
    "depth 100,000": (b'{"a":' + b"[" * 100_000, "nested deeper than 32"),
    "depth 40,000, objects": (b'{"a":' * 40_000, "nested deeper than 32"),
    "unterminated, all escapes": (b'{"a":"' + b'\\"' * 100_000, "Unterminated string"),
    "empty": (b"", "empty"),
    "white space": (b" \n\t", "empty"),
    "trailing junk": (b"{} {}", "Extra data at character 3"),
    "list on top": (b"[]", "the top level must be an object"),
    "scalar on top": (b"1", "the top level must be an object"),
    "refused scalar on top": (b"1e400", "beyond 2^53-1 at the top level"),
    "leading zero": (b'{"a":01}', "at character 6"),
    "digits that are not ASCII": ('{"a":\u0661}'.encode(), "at character 5"),
    "single quotes": (b"{'a':1}", "at character 1"),
    "trailing comma": (b'{"a":1,}', "at character"),
}


@pytest.mark.parametrize(("raw", "said"), HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_text_is_refused_and_the_error_says_where(raw: bytes, said: str) -> None:
    with pytest.raises(MalformedJson) as refused:
        read_json(raw)
    assert said in refused.value.detail


def test_a_million_names_are_refused_by_size() -> None:
    raw = b"{" + b",".join(b'"%d":1' % number for number in range(1_000_000)) + b"}"
    with pytest.raises(JsonTooLarge):
        read_json(raw)


def test_a_long_secret_is_not_repeated_in_the_error() -> None:
    secret = "s3cret" * 50
    with pytest.raises(MalformedJson) as refused:
        read_json(json.dumps({"outer": {secret: "\x00"}}).encode())
    assert len(refused.value.detail) < 200


def test_a_long_name_is_not_copied_for_each_of_its_children() -> None:
    document = {"k" * 10_000: [1] * 10_000, "a": "\u00e9"}
    raw = json.dumps(document).encode()
    tracemalloc.start()
    try:
        assert read_json(raw) == document
        assert tracemalloc.get_traced_memory()[1] < 20 * len(raw)
    finally:
        tracemalloc.stop()


def test_the_first_of_many_problems_is_named() -> None:
    with pytest.raises(MalformedJson, match=r"a NUL character at /a/1/b$"):
        read_json(b'{"a":[{"x":[1]},{"b":"\\u0000","c":NaN}],"d":NaN}')


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (nested(32), json.loads(nested(32))),
        (b'{"a":9007199254740991}', {"a": SAFE}),
        (b'{"a":-9007199254740991}', {"a": -SAFE}),
        (b'{"a":1.50}', {"a": 1.5}),
        (b'{"a":-0.0}', {"a": 0.0}),
        (b'{"a":1e15}', {"a": 1e15}),
        (b'{"a":5e-324}', {"a": 5e-324}),
        (b'{"a":"\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        (b'{"a":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}', {"a": "[" * 38}),
        (b' {"a":{"b":1},"c":{"b":1}}\n', {"a": {"b": 1}, "c": {"b": 1}}),
    ],
)
def test_what_survives_is_read(raw: bytes, value: dict[str, Any]) -> None:
    assert read_json(raw) == value


def test_the_size_limit_counts_bytes() -> None:
    raw = '{"a":"é"}'.encode()
    assert read_json(raw, max_bytes=len(raw)) == {"a": "é"}
    with pytest.raises(JsonTooLarge):
        read_json(raw, max_bytes=len(raw) - 1)


@given(st.binary(max_size=60) | texts.map(str.encode))
def test_no_bytes_give_anything_but_an_object_or_a_refusal(raw: bytes) -> None:
    with suppress(MalformedJson):
        assert isinstance(read_json(raw), dict)


@given(documents, st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_a_damaged_document_gives_an_object_or_a_refusal(
    document: dict[str, Any], at: int, junk: bytes
) -> None:
    raw = json.dumps(document).encode()
    at = at % (len(raw) + 1)
    with suppress(MalformedJson):
        assert isinstance(read_json(raw[:at] + junk + raw[at:]), dict)


literals = st.from_regex(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


@given(literals)
@example("9007199254740991.5")
@example("0.1")
@example("9007199254740991e0")
def test_a_number_is_read_exactly_when_it_keeps_its_value(literal: str) -> None:
    """The model works in exact fractions and knows nothing of the reader's shortcuts."""
    exact = Fraction(literal)
    kept = float(literal) not in (float("inf"), float("-inf")) and exact == Fraction(repr(float(literal)))
    expected = kept if exact.denominator != 1 else abs(exact) <= SAFE
    try:
        read = read_json(b'{"n":%s}' % literal.encode())["n"]
    except MalformedJson:
        assert not expected
    else:
        assert expected
        assert read == float(literal)


@given(documents)
def test_reading_and_canonicalising_change_no_value(document: dict[str, Any]) -> None:
    raw = canonical_bytes(document)
    assert read_json(raw) == read_json(json.dumps(document).encode()) == document
    assert canonical_bytes(read_json(raw)) == raw


@given(documents)
def test_the_order_of_names_changes_no_hash(document: dict[str, Any]) -> None:
    turned = dict(reversed(document.items()))
    assert content_hash(canonical_bytes(turned)) == content_hash(canonical_bytes(document))


@given(documents)
def test_names_are_sorted_by_their_utf_16_units(document: dict[str, Any]) -> None:
    def check(pairs: list[tuple[str, Any]]) -> None:
        units = [name.encode("utf-16-be") for name, _ in pairs]
        assert units == sorted(units)

    json.loads(canonical_bytes(document), object_pairs_hook=check)


def test_the_example_of_rfc_8785() -> None:
    raw = (
        b'{"numbers": [333333333.33333329, 4.50, 2e-3, 0.000000000000000000000000001],'
        b'"string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/",'
        b'"literals": [null, true, false]}'
    )
    with pytest.raises(MalformedJson, match="more digits"):
        read_json(raw)  # 333333333.33333329 is one of the numbers a double rewrites
    value = read_json(raw.replace(b"333333333.33333329", b"333333333.3333333"))
    assert canonical_bytes(value) == (
        b'{"literals":[null,true,false],"numbers":[333333333.3333333,4.5,0.002,1e-27],'
        b'"string":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


@pytest.mark.parametrize(
    "value", [{"a": float("nan")}, {"a": 2**53}, {"\ud800": 1}, {"a": "\ud800"}, {1: 2}, b""]
)
def test_what_is_no_json_value_has_no_canonical_bytes(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (its own errors, and the codec's, are all ValueErrors)
        canonical_bytes(value)


GOLDEN = {
    b"{}": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    b'{"b":2,"a":[1.0,"\\u00e9",null,true,-0.0,1e2]}': (
        "4a90e1dc3c5878f81843a7d99b866ddeac4d8f5fe3140068a5e23aee1f3ff14f"
    ),
    b'{"amount":12.50,"currency":"EUR","customer":{"id":"c-1","name":"Ada"}}': (
        "d8faa310ac1d7a826909306add305749d1339e5dfd816d0b2d777fcf1ccbb10f"
    ),
}


@pytest.mark.parametrize(("raw", "hashed"), GOLDEN.items())
def test_hashes_stay_what_they_were(raw: bytes, hashed: str) -> None:
    """Stored hashes outlive the code: a change breaks every approval and comparison in the field."""
    assert content_hash(canonical_bytes(read_json(raw))) == f"v1:sha256:{hashed}"


def test_a_content_hash_is_recognised() -> None:
    hashed = content_hash(b"x")
    assert is_content_hash(hashed)
    for other in (hashed[:-1], hashed + "\n", hashed.upper(), "v2" + hashed[2:], "", None, b"v1"):
        assert not is_content_hash(other)
