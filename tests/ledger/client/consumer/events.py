"""Settlements as a consumer gets them, for tests without a ledger."""

from __future__ import annotations

from datetime import UTC, datetime

from ledger.client.consumer import Event
from ledger.rules.states import Outcome
from ledger.rules.webhooks import Told, cloud_event, headers, secret_text

SECRET = b"s" * 32
SECRET_TEXT = secret_text(SECRET)
AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
NOW = AT.timestamp()


def event(
    webhook_id: str = "msg_1", settlement: int = 1, operation_id: str = "op_1", **more: object
) -> Event:
    return Event(
        webhook_id=webhook_id,
        delivery_id="dlv_1",
        type=str(more.get("type", "ledger.operation.confirmed.v1")),
        operation_id=operation_id,
        operation_key="invoice:7",
        outcome="confirmed",
        settlement=settlement,
        result_ref="re_1",
        replay=False,
        document={},
    )


def message(webhook_id: str = "msg_1", settlement: int = 1) -> tuple[dict[str, str], bytes]:
    """Headers and body of one settlement of the operation op_1, signed at AT."""
    body = cloud_event(
        Told(
            webhook_id=webhook_id,
            tenant_slug="acme",
            operation_id="op_1",
            operation_key="invoice:7",
            attempt_id="att_1",
            tool="email.send",
            outcome=Outcome.CONFIRMED,
            number=settlement,
            result_ref="re_1",
            settled_at=AT,
        )
    )
    return headers(webhook_id, at=AT, body=body, secrets=[SECRET]), body
