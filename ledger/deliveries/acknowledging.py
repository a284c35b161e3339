"""A consumer says that it has one: late, twice, or after everybody gave up, it is a fact and is kept."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.deliveries.holding import locked_delivery
from ledger.deliveries.moves import acknowledge
from ledger.events import agent_actor
from ledger.models import ApiKey, Delivery
from ledger.rules.states import DeliveryState
from ledger.transactions import database_clock, require_transaction


class UnknownDelivery(Exception):
    """This tenant has no delivery of this id and webhook id."""


@dataclass(frozen=True)
class Acknowledged:
    """`repeated`: it was ACKED before."""

    delivery: Delivery
    repeated: bool


def record_ack(*, key: ApiKey, delivery_id: str, webhook_id: str, duplicate: bool) -> Acknowledged:
    """Store the acknowledgement of what came as `webhook_id`; `duplicate` where the consumer had seen it."""
    require_transaction()
    found = Delivery.objects.filter(tenant_id=key.tenant_id, pk=delivery_id, webhook_id=webhook_id)
    operation_id = found.values_list("operation_id", flat=True).first()
    if operation_id is None:
        raise UnknownDelivery(delivery_id)
    delivery = locked_delivery(delivery_id, operation_id)
    repeated = delivery.state == DeliveryState.ACKED
    acknowledge(delivery, actor=agent_actor(key.agent), now=database_clock(), key=key, duplicate=duplicate)
    return Acknowledged(delivery, repeated)
