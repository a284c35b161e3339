"""Provider keys never change, and no text makes reading an API key raise."""

from __future__ import annotations

import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.keys import (
    ApiKeyParts,
    correlation_id,
    format_api_key,
    idempotency_key,
    parse_api_key,
    secret_hash,
)

KEY = "invoice:tenant-7:2026-08-11:send"

key_ids = st.from_regex(r"[0-9A-Za-z]{4,64}", fullmatch=True)
key_secrets = st.from_regex(r"[0-9A-Za-z_-]{43,128}", fullmatch=True)


def test_keys_stay_what_they_were() -> None:
    """A provider remembers them: a change here sends everything in flight a second time."""
    assert idempotency_key(7, KEY, 1) == "il-7f5728d9c304ffa76dd5dde9750d931d0a7b64c232bfa31b"
    assert correlation_id(7, KEY) == "ilc-5c1ce6f618f0c5d97eb899012cd47fa4464e93b46b09af36"
    assert idempotency_key("7", KEY, 1) == idempotency_key(7, KEY, 1)


@given(st.sets(st.tuples(st.integers(1, 99), st.text(min_size=1, max_size=9), st.integers(1, 9)), max_size=9))
def test_another_tenant_operation_or_generation_is_another_key(parts: set[tuple[int, str, int]]) -> None:
    assert len({idempotency_key(*part) for part in parts}) == len(parts)
    assert len({correlation_id(*part[:2]) for part in parts}) == len({part[:2] for part in parts})


@given(key_ids, key_secrets)
def test_an_api_key_is_read_back(key_id: str, secret: str) -> None:
    text = format_api_key(key_id, secret)
    assert parse_api_key(text) == ApiKeyParts(key_id, secret)


@pytest.mark.parametrize("make", [lambda: secrets.token_hex(32), lambda: secrets.token_urlsafe(32)])
def test_secrets_of_32_random_bytes_fit(make: object) -> None:
    secret = make()  # type: ignore[operator]
    assert parse_api_key(format_api_key("abcd1234", secret)) == ApiKeyParts("abcd1234", secret)


def test_the_check_stays_what_it_was() -> None:
    assert format_api_key("abcd1234", "k" * 43) == f"ilk_abcd1234_{'k' * 43}_79b34e6a"


@given(key_ids, key_secrets, st.integers(0, 300), st.characters(codec="ascii"))
def test_a_typo_is_no_key(key_id: str, secret: str, at: int, other: str) -> None:
    text = format_api_key(key_id, secret)
    at %= len(text)
    mistyped = text[:at] + other + text[at + 1 :]
    assert (parse_api_key(mistyped) is None) == (mistyped != text)


@given(st.text() | st.none() | st.binary() | st.integers() | st.from_regex(r"ilk_.*_.*_.*"))
def test_no_input_makes_reading_raise(text: object) -> None:
    assert parse_api_key(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "ilk_",
        "ilk_abcd_\ud800_00000000",
        "ilk_abcd_" + "k" * 10**6,
        "ilk_abcd1234_" + "k" * 43 + "_79b34e6a\n",
    ],
)
def test_odd_texts_are_no_keys(text: str) -> None:
    assert parse_api_key(text) is None


@pytest.mark.parametrize(
    ("key_id", "secret"), [("a_b_c", "k" * 43), ("abcd", "short"), ("", "k" * 43), ("abcd", "é" * 43)]
)
def test_parts_that_do_not_fit_make_no_key(key_id: str, secret: str) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        format_api_key(key_id, secret)


def test_the_secret_shows_in_no_repr_and_is_stored_hashed() -> None:
    secret = "k" * 43
    assert secret not in repr(ApiKeyParts("abcd1234", secret))
    assert len(secret_hash(secret)) == 64
    assert secret_hash(secret) != secret_hash(secret + "k")
