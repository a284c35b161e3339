"""What the ledger signs is accepted, everything else is one error: `NotFromTheLedger`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from http.client import HTTPMessage
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.client.consumer import NotFromTheLedger, Verifier
from ledger.rules.webhooks import cloud_event, headers, secret_text
from tests.ledger.rules.test_webhooks import TOLD

SECRET = b"s" * 32
OTHER = b"o" * 32
AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
NOW = AT.timestamp()
BODY = cloud_event(TOLD)
SENT = headers("msg_1", at=AT, body=BODY, secrets=[SECRET])


def test_a_message_of_ours() -> None:
    event = Verifier(secret_text(SECRET)).verify({k.title(): v for k, v in SENT.items()}, BODY, now=NOW)
    assert (event.webhook_id, event.operation_id, event.settlement) == ("msg_1", "op_1", 2)
    assert (event.outcome, event.result_ref, event.replay) == ("confirmed", "re_1", False)


@pytest.mark.parametrize("off_s", [-300, 300])
def test_a_clock_may_be_five_minutes_off(off_s: int) -> None:
    assert Verifier(secret_text(SECRET)).verify(SENT, BODY, now=NOW + off_s).webhook_id == "msg_1"
    with pytest.raises(NotFromTheLedger, match="clock"):
        Verifier(secret_text(SECRET)).verify(SENT, BODY, now=NOW + off_s + (1 if off_s > 0 else -1))


def test_either_secret_while_one_is_replaced() -> None:
    rotated = headers("msg_1", at=AT, body=BODY, secrets=[OTHER, SECRET])
    assert Verifier([secret_text(SECRET)]).verify(rotated, BODY, now=NOW).webhook_id == "msg_1"
    assert (
        Verifier([secret_text(OTHER), secret_text(SECRET)]).verify(SENT, BODY, now=NOW).webhook_id == "msg_1"
    )


BAD: dict[str, dict[str, str]] = {
    "no signature": {"webhook-signature": ""},
    "of another version": {"webhook-signature": SENT["webhook-signature"].replace("v1,", "v2,")},
    "without a version": {"webhook-signature": SENT["webhook-signature"][3:]},
    "no base64": {"webhook-signature": "v1,****"},
    "half a signature": {"webhook-signature": SENT["webhook-signature"][:-8]},
    "an empty one": {"webhook-signature": "v1,"},
    "not ASCII": {"webhook-signature": "v1,é"},
    "only spaces": {"webhook-signature": "   "},
    "by commas": {"webhook-signature": SENT["webhook-signature"] + "," + SENT["webhook-signature"]},
    "of another message": {"webhook-id": "msg_2"},
    "no id": {"webhook-id": ""},
    "no timestamp": {"webhook-timestamp": ""},
    "another timestamp": {"webhook-timestamp": str(int(NOW) + 1)},
    "a negative timestamp": {"webhook-timestamp": "-1"},
    "a fraction": {"webhook-timestamp": f"{NOW}"},
    "a word": {"webhook-timestamp": "now"},
    "an endless number": {"webhook-timestamp": "9" * 5_000},
    "other digits": {"webhook-timestamp": "١٢٣"},
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_or_forged_header_is_one_error(name: str) -> None:
    with pytest.raises(NotFromTheLedger):
        Verifier(secret_text(SECRET)).verify({**SENT, **BAD[name]}, BODY, now=NOW)


def parsed(*pairs: tuple[str, str]) -> HTTPMessage:
    """As Python's own server has them: with `items`, and no mapping."""
    message = HTTPMessage()
    for name, value in pairs:
        message.add_header(name, value)
    return message


SHAPES: dict[str, Any] = {
    "text": SENT,
    "another case": {name.upper(): value for name, value in SENT.items()},
    "bytes": {name.encode(): value.encode() for name, value in SENT.items()},
    "a list of bytes, as ASGI has it": [(name.encode(), value.encode()) for name, value in SENT.items()],
    "a list of text": list(SENT.items()),
    "an iterator": iter(list(SENT.items())),
    "a parsed message": parsed(*SENT.items()),
    "values in lists": {name: [value] for name, value in SENT.items()},
    "a WSGI environ": {
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in SENT.items()},
        "wsgi.input": object(),
        "wsgi.version": (1, 0),
    },
    "among others": {**SENT, "X-Other": "é\n", 7: object()},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_headers_as_frameworks_hand_them_over(shape: str) -> None:
    assert Verifier(secret_text(SECRET)).verify(SHAPES[shape], BODY, now=NOW).webhook_id == "msg_1"


MALFORMED: dict[str, Any] = {
    "none at all": None,
    "a number": 7,
    "text": "webhook-id: msg_1",
    "pairs that are none": [("webhook-id",)],
    "triples": [("webhook-id", "msg_1", "x")],
    "a value of None": {**SENT, "webhook-id": None},
    "a value that is a number": {**SENT, "webhook-timestamp": int(NOW)},
    "no value in a list": {**SENT, "webhook-signature": []},
    "two values": {**SENT, "webhook-signature": [SENT["webhook-signature"]] * 2},
    "twice in a parsed message": parsed(*SENT.items(), ("Webhook-Id", "msg_2")),
    "twice": [*SENT.items(), ("webhook-id", "msg_2")],
    "twice in another case": {**SENT, "Webhook-Id": "msg_2"},
    "twice, once as in an environ": {**SENT, "HTTP_WEBHOOK_ID": "msg_2"},
    "bytes that are no text": {**SENT, "webhook-id": b"\xff\xfe"},
    "a line break": {**SENT, "webhook-id": "msg_1\n"},
    "NUL": {**SENT, "webhook-id": "msg_1\0"},
}


@pytest.mark.parametrize("shape", MALFORMED)
def test_malformed_headers_are_one_error(shape: str) -> None:
    with pytest.raises(NotFromTheLedger):
        Verifier(secret_text(SECRET)).verify(MALFORMED[shape], BODY, now=NOW)


@pytest.mark.parametrize("body", [BODY.decode(), json.loads(BODY), None])
def test_a_body_that_is_no_bytes_is_told_to_who_wrote_the_handler(body: Any) -> None:
    with pytest.raises(TypeError, match="bytes of the request as they arrived"):
        Verifier(secret_text(SECRET)).verify(SENT, body, now=NOW)


def signed(**changed: Any) -> tuple[dict[str, str], bytes]:
    body = json.dumps({**json.loads(BODY), **changed}).encode()
    return headers("msg_1", at=AT, body=body, secrets=[SECRET]), body


def test_a_type_that_is_not_known_yet_settles_nothing() -> None:
    event = Verifier(secret_text(SECRET)).verify(
        *signed(type="ledger.operation.archived.v1", data=7), now=NOW
    )
    assert (event.settles, event.type) == (False, "ledger.operation.archived.v1")


NOT_AS_AGREED: list[dict[str, Any]] = [
    *({"sequence": number} for number in (0, -1, True, "1", 1.5, 2**31, None)),
    *({"subject": subject} for subject in ("", "op 1", "o" * 65, None, 7)),
    {"type": None},
    {"type": []},
    {"data": None},
    {"data": {}},
    {"data": {"operation_key": "k", "outcome": 7, "result_ref": None}},
]


@pytest.mark.parametrize("changed", NOT_AS_AGREED, ids=str)
def test_signed_and_not_as_agreed(changed: dict[str, Any]) -> None:
    with pytest.raises(NotFromTheLedger, match="no event"):
        Verifier(secret_text(SECRET)).verify(*signed(**changed), now=NOW)


def test_json_written_anew_does_not_verify() -> None:
    written_anew = json.dumps(json.loads(BODY)).encode()
    with pytest.raises(NotFromTheLedger):
        Verifier(secret_text(SECRET)).verify(SENT, written_anew, now=NOW)


@given(
    st.dictionaries(
        st.sampled_from(["webhook-id", "webhook-timestamp", "webhook-signature", "Other"]), st.text()
    ),
    st.binary(),
)
def test_nothing_raises_anything_else(sent: dict[str, str], body: bytes) -> None:
    with pytest.raises(NotFromTheLedger):
        Verifier(secret_text(SECRET)).verify(sent, body, now=NOW)


@given(
    st.one_of(
        st.binary(), st.recursive(st.none() | st.integers(), st.lists).map(lambda v: json.dumps(v).encode())
    )
)
def test_a_signed_body_that_is_no_event_is_the_same_error(body: bytes) -> None:
    sent = headers("msg_1", at=AT, body=body, secrets=[SECRET])
    with pytest.raises(NotFromTheLedger, match="no event"):
        Verifier(secret_text(SECRET)).verify(sent, body, now=NOW)


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_!!", "é"])
def test_a_secret_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="secret"):
        Verifier(text)
