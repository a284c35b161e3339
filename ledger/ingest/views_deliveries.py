"""Deliveries: a consumer acknowledges what it was sent."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger.deliveries import UnknownDelivery, record_ack
from ledger.ingest import answers
from ledger.ingest.auth import Call, KeyWithVerb
from ledger.ingest.bodies import StrictBody
from ledger.ingest.calls import OBJECT_PROBLEMS, call_verb, checked_id, key_of
from ledger.ingest.schemas import AckBody
from ledger.ingest.shapes import delivery_line, mark_replayed
from ledger.lifecycle import UnknownObject

router = Router(tags=["deliveries"])


@router.post(
    "/deliveries/{delivery_id}/ack",
    auth=KeyWithVerb("ack", Call.REPORT),
    response={200: answers.DeliveryLine, **OBJECT_PROBLEMS},
)
def post_ack(
    request: HttpRequest, response: HttpResponse, delivery_id: str, body: Annotated[AckBody, StrictBody()]
) -> answers.DeliveryLine:
    """Say that it was received, as often as you like; a late one counts too."""
    try:
        acknowledged = call_verb(
            record_ack,
            key=key_of(request),
            delivery_id=checked_id(delivery_id),
            webhook_id=body.webhook_id,
            duplicate=body.duplicate,
        )
    except UnknownDelivery:
        raise UnknownObject from None
    mark_replayed(response, replayed=acknowledged.repeated)
    return delivery_line(acknowledged.delivery)
