"""What people do about deliveries: they redeliver, give up, pause and resume."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ledger.models import Delivery, Destination, User
from ledger.rules.states import DeliveryState
from review import deliveries, destinations
from review.destinations import DestinationRefused
from review.door import NotPermitted, NotVisible

WHY = "the consumer is mended"
REFUSALS = (deliveries.RedeliveryRefused, DestinationRefused, NotPermitted, NotVisible)
WAITING = (DeliveryState.PENDING, DeliveryState.SENT)


def subject_of(command: Mapping[str, Any]) -> str | None:
    """In the chaos: whatever is there for this kind of press; `redeliver` may also take one that is ACKED."""
    return _NEWEST[command["kind"]](command["tenant_id"])


def press(kind: str, subject: str, *, slug: str) -> str:
    """One press on this delivery or destination, by somebody who may."""
    by = User.objects.get(username=f"{'first' if kind in {'redeliver', 'give_up'} else 'admin'}-{slug}")
    try:
        _PRESSES[kind](by, subject)
    except REFUSALS as refused:
        return f"{kind} refused: {refused}"
    return f"pressed {kind}"


def _toggle(by: User, destination_id: str) -> None:
    paused = Destination.objects.get(pk=destination_id).paused_at is not None
    (destinations.resume if paused else destinations.pause)(by, destination_id, why=WHY)


_PRESSES: dict[str, Callable[[User, str], object]] = {
    "redeliver": lambda by, delivery: deliveries.redeliver(by, delivery, why=WHY),
    "give_up": lambda by, delivery: deliveries.give_up(by, delivery, why=WHY),
    "toggle": _toggle,
    "resume": lambda by, destination: destinations.resume(by, destination, why=WHY),
}


def _newest(tenant_id: int, *states: DeliveryState) -> str | None:
    found = Delivery.objects.filter(tenant_id=tenant_id, state__in=states).order_by("state", "-pk")
    return found.values_list("pk", flat=True).last()


def _destination(tenant_id: int) -> str | None:
    return Destination.objects.filter(tenant_id=tenant_id).order_by("?").values_list("pk", flat=True).first()


_NEWEST: dict[str, Callable[[int], str | None]] = {
    "redeliver": lambda tenant: _newest(tenant, DeliveryState.DEAD_LETTERED, DeliveryState.ACKED),
    "give_up": lambda tenant: _newest(tenant, *WAITING),
    "toggle": _destination,
}
