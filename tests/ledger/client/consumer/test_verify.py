"""What the ledger signs is accepted, everything else is one error: `NotFromTheLedger`."""

from __future__ import annotations

import json
from datetime import UTC, datetime

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
