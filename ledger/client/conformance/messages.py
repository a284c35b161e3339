"""Messages as the ledger signs them, of operations that do not exist; each run has its own ids."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from ledger.client.clock import wall_clock_s
from ledger.rules.states import Outcome
from ledger.rules.webhooks import SECRET_BYTES, Told, cloud_event, headers_of_delivery, secret_bytes


@dataclass(frozen=True)
class Message:
    """What is signed. Each sending of it is signed anew."""

    webhook_id: str
    body: bytes

    def changed(self, **changed: Any) -> "Message":
        return replace(self, body=_json({**json.loads(self.body), **changed}))


class Signer:
    """Makes messages and signs them with the consumer's secret, or with one it does not know (`stranger`)."""

    def __init__(self, secret: str) -> None:
        self.secret = secret_bytes(secret)
        self.stranger = secrets.token_bytes(SECRET_BYTES)
        self._run = f"conf{secrets.token_hex(5)}"
        self._numbers = count(1)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(wall_clock_s(), UTC)

    def operation(self) -> str:
        return f"op_{self._run}{next(self._numbers):04}"

    def settlement(self, number: int = 1, *, operation: str = "") -> Message:
        """The settlement of this number; of an operation of its own where none is named."""
        webhook_id = f"msg_{self._run}{next(self._numbers):04}"
        told = Told(
            webhook_id=webhook_id,
            tenant_slug="conformance",
            operation_id=operation or self.operation(),
            operation_key=f"conformance:{webhook_id}:é/1.0",
            attempt_id=f"att_{self._run}",
            tool="conformance.check",
            outcome=Outcome.CONFIRMED,
            number=number,
            result_ref=f"res_{webhook_id}",
            settled_at=self._now(),
        )
        return Message(webhook_id, cloud_event(told))

    def headers(
        self, message: Message, *, by: Sequence[bytes] = (), late_s: float = 0, replay: bool = False
    ) -> dict[str, str]:
        """Signed by these secrets, `late_s` seconds ago."""
        at = self._now() - timedelta(seconds=late_s)
        delivery_id, known = message.webhook_id.replace("msg_", "dlv_"), by or [self.secret]
        return headers_of_delivery(
            delivery_id, message.webhook_id, at=at, body=message.body, secrets=known, replay=replay
        )


def spellings(body: bytes) -> dict[str, bytes]:
    """The same JSON in other bytes."""
    document = json.loads(body)
    loose = json.dumps(document, indent=1).replace("/", "\\/")
    return {
        "spaces and escapes": loose.encode(),
        "as Python writes it": json.dumps(document).encode(),
        "other order": _json(dict(reversed(list(document.items())))),
    }


def _json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
