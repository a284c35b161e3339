"""What a consumer is sent: a CloudEvents 1.0 body, signed by Standard Webhooks.

Sources: cloudevents.io spec v1.0.2 (JSON format); standardwebhooks.com spec 1.0.0: the signature is
`v1,` and the base64 of HMAC-SHA256 over `{id}.{timestamp}.{body}`; a secret is written `whsec_` and base64.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from ledger.rules.canonical import canonical_bytes
from ledger.rules.states import Outcome

CONTENT_TYPE = "application/cloudevents+json"
TEST_TYPE = "ledger.test.v1"
SECRET_BYTES = 32
_PREFIX = "whsec_"


@dataclass(frozen=True)
class Told:
    """What one settlement tells a consumer. `result_ref` is a reference, never the provider's answer."""

    webhook_id: str
    tenant_slug: str
    operation_id: str
    operation_key: str
    attempt_id: str
    tool: str
    outcome: Outcome
    number: int
    result_ref: str
    settled_at: datetime
    relinked_to: str = ""


def cloud_event(told: Told) -> bytes:
    """The body, made once for all tries: canonical JSON, so that equal facts are equal bytes."""
    data = {
        "operation_id": told.operation_id,
        "operation_key": told.operation_key,
        "attempt_id": told.attempt_id,
        "tool": told.tool,
        "outcome": str(told.outcome),
        "settlement": told.number,
        "result_ref": told.result_ref or None,
        "relinked_to": told.relinked_to or None,
    }
    return canonical_bytes(
        {
            "specversion": "1.0",
            "id": told.webhook_id,
            "type": f"ledger.operation.{told.outcome}.v1",
            "source": f"/tenants/{told.tenant_slug}",
            "subject": told.operation_id,
            "time": _rfc3339(told.settled_at),
            "sequence": told.number,
            "datacontenttype": "application/json",
            "data": data,
        }
    )


def trial_event(webhook_id: str, *, tenant_slug: str, destination_id: str, at: datetime) -> bytes:
    """The body of a message that only tries the line."""
    return canonical_bytes(
        {
            "specversion": "1.0",
            "id": webhook_id,
            "type": TEST_TYPE,
            "source": f"/tenants/{tenant_slug}",
            "subject": destination_id,
            "time": _rfc3339(at),
            "datacontenttype": "application/json",
            "data": {"destination_id": destination_id},
        }
    )


def _rfc3339(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def headers(webhook_id: str, *, at: datetime, body: bytes, secrets: Iterable[bytes]) -> dict[str, str]:
    """The headers of one try, made at this time. Every live secret signs, so that a rotation overlaps."""
    timestamp = str(int(at.timestamp()))
    return {
        "Content-Type": CONTENT_TYPE,
        "webhook-id": webhook_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(signature(secret, webhook_id, timestamp, body) for secret in secrets),
        "Idempotency-Key": webhook_id,
    }


def headers_of_delivery(
    delivery_id: str, webhook_id: str, *, at: datetime, body: bytes, secrets: Iterable[bytes], replay: bool
) -> dict[str, str]:
    """The same and who sends which delivery; `replay`: it ended before, and a person had it sent again."""
    again = {"Ledger-Replay": "true"} if replay else {}
    signed = headers(webhook_id, at=at, body=body, secrets=secrets)
    return {"User-Agent": "interruption-ledger", "Ledger-Delivery": delivery_id, **signed, **again}


def signature(secret: bytes, webhook_id: str, timestamp: str, body: bytes) -> str:
    """`v1,<base64>` over exactly the bytes that are sent."""
    signed = b".".join((webhook_id.encode(), timestamp.encode(), body))
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def secret_text(secret: bytes) -> str:
    """A secret as it is shown, once."""
    return _PREFIX + base64.b64encode(secret).decode()


def secret_bytes(text: str) -> bytes:
    """A secret as it signs. Raises ValueError where the text is none."""
    try:
        return base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except ValueError as error:
        raise ValueError("a secret is whsec_ and base64") from error
