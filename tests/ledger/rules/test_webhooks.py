"""The signature against the specification's known vector and against the reference verifier."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from ledger.rules.states import Outcome
from ledger.rules.webhooks import (
    Told,
    cloud_event,
    headers,
    secret_bytes,
    secret_text,
    signature,
)

TOLD = Told(
    webhook_id="msg_1",
    tenant_slug="acme",
    operation_id="op_1",
    operation_key="invoice:7",
    attempt_id="att_1",
    tool="email.send",
    outcome=Outcome.CONFIRMED,
    number=2,
    result_ref="re_1",
    settled_at=datetime(2026, 11, 29, 12, tzinfo=UTC),
)


def test_the_known_vector() -> None:
    """From the test vectors of the Standard Webhooks reference libraries."""
    secret = secret_bytes("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200))
def test_the_reference_verifier_accepts_it(secret: bytes, body: bytes) -> None:
    text = body.hex()
    now = datetime.now(UTC)
    sent = headers("msg_1", at=now, body=json.dumps(text).encode(), secrets=[secret])
    assert Webhook(secret_text(secret)).verify(json.dumps(text), sent) == text


def test_both_secrets_sign_while_they_overlap() -> None:
    old, new, other = b"o" * 32, b"n" * 32, b"x" * 32
    sent = headers("msg_1", at=datetime.now(UTC), body=b"{}", secrets=[new, old])
    for secret in (old, new):
        assert Webhook(secret_text(secret)).verify(b"{}", sent) == {}
    with pytest.raises(WebhookVerificationError):
        Webhook(secret_text(other)).verify(b"{}", sent)


def test_equal_facts_are_equal_bytes() -> None:
    assert cloud_event(TOLD) == cloud_event(TOLD)
    event = json.loads(cloud_event(TOLD))
    assert {name: event[name] for name in ("specversion", "id", "type", "source", "subject", "sequence")} == {
        "specversion": "1.0",
        "id": "msg_1",
        "type": "ledger.operation.confirmed.v1",
        "source": "/tenants/acme",
        "subject": "op_1",
        "sequence": 2,
    }
    assert event["time"] == "2026-11-29T12:00:00Z"
    assert event["data"]["result_ref"] == "re_1"


@pytest.mark.parametrize("text", ["whsec_!!", "whsec_a", "é"])
def test_a_secret_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="secret"):
        secret_bytes(text)
