"""Hostile bodies: a clear problem, nothing stored, never a 500."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.ledger.ingest.cast import Cast, stored
from tests.support.api import Api, slug_of

MOST_BYTES = 262_144


def intent(args: bytes = b"{}", *, before: bytes = b"", after: bytes = b"") -> bytes:
    """An intent that would be fine but for what is put into it."""
    return before + b'{"operation_key": "k", "tool": "email.send", "args": ' + args + b"}" + after


MALFORMED = {
    "5000 digits": intent(b'{"n": ' + b"9" * 5_000 + b"}"),
    "2^53+1": intent(b'{"n": 9007199254740993}'),
    "2^53": intent(b'{"n": 9007199254740992}'),
    "more digits than a double": intent(b'{"n": 0.10000000000000000001}'),
    "NUL": intent(b'{"a": "\\u0000"}'),
    "NUL in a name": intent(b'{"\\u0000": 1}'),
    "lone high surrogate": intent(b'{"a": "\\ud800"}'),
    "lone low surrogate": intent(b'{"a": "\\udc00"}'),
    "byte order mark": intent(before=b"\xef\xbb\xbf"),
    "UTF-16": intent().decode().encode("utf-16"),
    "overlong UTF-8": intent(b'{"a": "\xc0\xaf"}'),
    "surrogate in UTF-8": intent(b'{"a": "\xed\xa0\x80"}'),
    "depth 33": intent(b"[" * 33 + b"]" * 33),
    "depth 100,000": b"[" * 100_000 + b"]" * 100_000,
    "depth 100,000, never closed": b'{"a":' * 40_000,
    "empty": b"",
    "blank": b" \n",
    "trailing junk": intent(after=b" x"),
    "two objects": intent() + intent(),
    "a list": b"[" + intent() + b"]",
    "a scalar": b"1",
    "null": b"null",
    "a text": b'"x"',
    "single quotes": b"{'operation_key': 'k'}",
    "a comment": intent(after=b" // x"),
    "cut short": intent()[:-5],
    "raw control character": intent(b'{"a": "\x01"}'),
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_body_is_refused_and_nothing_stored(api: Api, body: bytes) -> None:
    before = stored()
    answer = api.post_bytes("/intents", body)
    assert (answer.status_code, slug_of(answer)) == (400, "malformed-json")
    assert stored() == before


def test_the_detail_names_the_place_and_not_the_secret(api: Api) -> None:
    answer = api.post_bytes("/intents", intent(b'{"card": {"number": 4111111111111111199}}'))
    assert "/args/card/number" in answer.json()["detail"]


ENVELOPES = {
    "no media type": ({"Content-Type": ""}, 415),
    "form": ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    "multipart": ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
    "text": ({"Content-Type": "text/plain"}, 415),
    "other charset": ({"Content-Type": "application/json; charset=utf-16"}, 415),
    "merge patch": ({"Content-Type": "application/merge-patch+json"}, 415),
    "brotli": ({"Content-Encoding": "br"}, 415),
    "chained encodings": ({"Content-Encoding": "gzip, identity"}, 415),
}


@pytest.mark.parametrize(("headers", "status"), ENVELOPES.values(), ids=ENVELOPES)
def test_only_plain_json_is_read(api: Api, headers: dict[str, str], status: int) -> None:
    before = stored()
    answer = api.http.post(
        "/intents", content=intent(), headers={"Content-Type": "application/json", **headers}
    )
    assert (answer.status_code, slug_of(answer)) == (status, "unsupported-media-type")
    assert stored() == before


def test_a_compressed_body_is_refused(api: Api) -> None:
    answer = api.post_bytes("/intents", gzip.compress(intent()), Content_Encoding="gzip")
    assert (answer.status_code, slug_of(answer)) == (415, "unsupported-media-type")


def test_a_charset_of_utf_8_is_plain(api: Api) -> None:
    assert (
        api.post_bytes("/intents", intent(), Content_Type="application/json; charset=UTF-8").status_code
        == 201
    )


@pytest.mark.parametrize("size", [MOST_BYTES + 1, 5_000_000, 20_000_000])
def test_a_large_body_is_refused(api: Api, size: int) -> None:
    before = stored()
    answer = api.post_bytes("/intents", intent(b'{"a": "' + b"x" * size + b'"}'))
    assert (answer.status_code, slug_of(answer)) == (413, "body-too-large")
    assert stored() == before


def test_a_body_of_exactly_the_limit_is_read(api: Api) -> None:
    padded = intent(after=b" " * (MOST_BYTES - len(intent())))
    assert len(padded) == MOST_BYTES
    assert api.post_bytes("/intents", padded).status_code == 201


def test_many_keys_are_only_a_large_body(api: Api) -> None:
    million = b"{" + b",".join(b'"%d":1' % number for number in range(1_000_000)) + b"}"
    assert slug_of(api.post_bytes("/intents", intent(million))) == "body-too-large"
    many = b"{" + b",".join(b'"%d":1' % number for number in range(20_000)) + b"}"
    assert api.post_bytes("/intents", intent(many)).status_code == 201


def test_chunked_bodies_need_a_length(api: Api) -> None:
    answer = api.http.post("/intents", content=iter([intent()]), headers={"Content-Type": "application/json"})
    assert (answer.status_code, slug_of(answer)) == (411, "length-required")


FIELDS = {
    "key too long": ({"operation_key": "k" * 256}, "/operation_key"),
    "key empty": ({"operation_key": ""}, "/operation_key"),
    "key with a control character": ({"operation_key": "a\x07b"}, "/operation_key"),
    "key with a line break": ({"operation_key": "a\nb"}, "/operation_key"),
    "key with a bidirectional override": ({"operation_key": "a\u202eb"}, "/operation_key"),
    "key with an isolate": ({"operation_key": "a\u2066b"}, "/operation_key"),
    "key with a zero-width space": ({"operation_key": "a\u200bb"}, "/operation_key"),
    "key a number": ({"operation_key": 1}, "/operation_key"),
    "key null": ({"operation_key": None}, "/operation_key"),
    "tool too long": ({"tool": "t" * 201}, "/tool"),
    "tool a list": ({"tool": ["email.send"]}, "/tool"),
    "args a list": ({"args": [1]}, "/args"),
    "args a text": ({"args": "{}"}, "/args"),
    "hash of another kind": ({"args_hash": "sha256:00"}, "/args_hash"),
    "hash in capitals": ({"args_hash": "v1:sha256:" + "A" * 64}, "/args_hash"),
    "run with a slash": ({"run": "a/b"}, "/run"),
    "run of dots": ({"run": ".."}, "/run"),
    "expiry infinity": ({"expires_at": "infinity"}, "/expires_at"),
    "expiry -infinity": ({"expires_at": "-infinity"}, "/expires_at"),
    "expiry a number": ({"expires_at": 1786000000}, "/expires_at"),
    "expiry without a zone": ({"expires_at": "2026-08-11T09:30:00"}, "/expires_at"),
    "expiry a date": ({"expires_at": "2026-08-11"}, "/expires_at"),
    "expiry of no calendar": ({"expires_at": "2026-02-30T00:00:00Z"}, "/expires_at"),
    "expiry before all time": ({"expires_at": "0001-01-01T00:00:00+23:59"}, "/expires_at"),
    "expiry after all time": ({"expires_at": "9999-12-31T23:59:59-23:59"}, "/expires_at"),
    "expiry with a strange zone": ({"expires_at": "2026-08-11T00:00:00+99:99"}, "/expires_at"),
    "unknown field": ({"priority": 1}, "/priority"),
    "unknown field with a strange name": ({"a/b~\u202e": 1}, "/a~1b~0\\u202e"),
    "actor with an override": ({"actor": "\u202eevil"}, "/actor"),
}


@pytest.mark.parametrize(("changed", "pointer"), FIELDS.values(), ids=FIELDS)
def test_a_field_that_does_not_fit_is_named(api: Api, changed: dict[str, object], pointer: str) -> None:
    before = stored()
    good = {"operation_key": "k", "tool": "email.send", "args": {}}
    answer = api.post_bytes("/intents", json.dumps({**good, **changed}).encode())
    assert (answer.status_code, slug_of(answer)) == (422, "invalid-request")
    assert answer.json()["detail"].startswith(f"{pointer}: ")
    assert stored() == before


def test_missing_fields_are_all_named(api: Api) -> None:
    detail = api.post("/intents").json()["detail"]
    assert "/operation_key: is required" in detail
    assert "/tool: is required" in detail


REPORTS = {
    "other outcome": {"outcome": "perhaps"},
    "no worker": {"worker_id": ""},
    "success without effect": {"outcome": "succeeded", "no_effect": True},
    "success with an error": {"outcome": "succeeded", "error": {"class": "reset"}},
    "unknown and retryable": {"outcome": "unknown", "retryable": True},
    "other error class": {"outcome": "failed", "error": {"class": "weird"}},
    "error by its inner name": {"outcome": "failed", "error": {"class": "reset", "code": 1}},
    "flag as text": {"outcome": "failed", "no_effect": "true"},
    "flag as number": {"outcome": "failed", "no_effect": 1},
    "usage below zero": {"usage": {"tokens": -1}},
    "usage beyond all": {"usage": {"tokens": 2**53 - 1}},
    "usage of a unit that is no word": {"usage": {"eu ros": 1}},
    "usage in parts": {"usage": {"tokens": 0.5}},
    "reference too long": {"result_ref": "r" * 1001},
    "request id with a control character": {"provider_request_id": "a\rb"},
}


@pytest.mark.parametrize("changed", REPORTS.values(), ids=REPORTS)
def test_a_report_that_says_nothing_clear_is_refused(api: Api, changed: dict[str, object]) -> None:
    attempt = api.post("/intents", operation_key="k", tool="email.send", args={}).json()["attempt_id"]
    before = stored()
    good = {"worker_id": "w", "outcome": "succeeded"}
    answer = api.post(f"/attempts/{attempt}/outcome", **{**good, **changed})
    assert (answer.status_code, slug_of(answer)) == (422, "invalid-request")
    assert stored() == before


def test_markup_and_padding_are_kept_as_they_are(api: Api) -> None:
    args = {"pad": " " * 65_536, "html": "<script>alert(1)</script>", "bidi": "\u202e", "e": "\U0001f600"}
    made = api.post("/intents", operation_key="<script>alert(1)</script>", tool="email.send", args=args)
    assert made.status_code == 201
    leave = api.post(
        f"/attempts/{made.json()['attempt_id']}/dispatch", worker_id="w", args_hash=made.json()["args_hash"]
    )
    assert leave.json()["args"] == args


def test_a_refused_tool_leaves_a_refusal_and_no_operation(api: Api, cast: Cast) -> None:
    from ledger.models import Refusal

    before = stored()
    answer = api.post("/intents", operation_key="k", tool="secret.drop", args={})
    assert (answer.status_code, slug_of(answer)) == (403, "policy-refused")
    assert stored() == before
    assert [r.reason for r in Refusal.objects.filter(tenant=cast.tenant)] == ["policy-refused"]
