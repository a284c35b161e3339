"""One line about a delivery, made from rows already read."""

from __future__ import annotations

from datetime import datetime

from ledger.models import Delivery, Destination
from ledger.queries.arguments import sentence_of
from ledger.rules.deliveries import MOST_TRIES, TryEnd
from ledger.rules.next_step import NextStep
from ledger.rules.policy import Rule
from ledger.rules.states import DeliveryState
from review.queries.delivery_values import DeliveryRow, DestinationName
from review.queries.delivery_words import DEAD_WORDS, end_words
from review.queries.lane_values import LaneRow
from review.queries.tenants import tenant_view

RELATED = ("tenant", "destination__tenant", "operation", "settlement__attempt")
STAYS_DEAD = "it stays a dead letter; its consumer may still acknowledge it."
STAYS_ACKED = "it stays acknowledged."
STAYS_HELD = "it stays held, and nothing is sent."
GOES_ON = f"it is tried at most {MOST_TRIES} times, then it is a dead letter."


def delivery_row(delivery: Delivery, rule: Rule | None, now: datetime) -> DeliveryRow:
    """No query: everything in RELATED is read already."""
    settlement = delivery.settlement
    return DeliveryRow(
        delivery_id=delivery.pk,
        destination=destination_name(delivery.destination),
        operation_id=delivery.operation_id,
        operation_key=delivery.operation.operation_key,
        tool=settlement.attempt.tool,
        sentence=sentence_of(settlement.attempt, rule),
        settlement=settlement.number,
        outcome=settlement.outcome,
        state=DeliveryState(delivery.state),
        tries=delivery.tries,
        error=error_of(delivery),
        dead=DEAD_WORDS[delivery.dead_reason] if _is_dead(delivery) else "",
        created_at=delivery.created_at,
        acked_at=delivery.acked_at,
        next_step=next_step(delivery, now),
    )


def lane_row(delivery: Delivery, now: datetime) -> LaneRow:
    return LaneRow(
        delivery_id=delivery.pk,
        destination=delivery.destination.name,
        settlement=delivery.settlement.number,
        outcome=delivery.settlement.outcome,
        state=DeliveryState(delivery.state),
        tries=delivery.tries,
        error=error_of(delivery),
        next_step=next_step(delivery, now),
    )


def destination_name(destination: Destination) -> DestinationName:
    """Its tenant is read already."""
    return DestinationName(
        destination.pk, destination.name, tenant_view(destination.tenant), destination.paused_at is not None
    )


def error_of(delivery: Delivery) -> str:
    """How the last try ended, unless that was well or has not happened."""
    well = delivery.last_end in ("", TryEnd.RECEIVED)
    return "" if well else end_words(delivery.last_end)


def next_step(delivery: Delivery, now: datetime) -> NextStep:
    """What happens by itself, and what it leads to if nobody acts."""
    if delivery.lease_until is not None and delivery.lease_until > now:
        return NextStep("a try is under way; it counts as lost", delivery.lease_until, _after(delivery))
    if _is_dead(delivery):
        return NextStep("nothing", None, STAYS_DEAD)
    if delivery.next_at is None and delivery.held_at is None:
        return NextStep("nothing", None, "it is acknowledged and needs nothing.")
    if delivery.next_at is None or delivery.destination.paused_at is not None:
        return NextStep(f"nothing while {delivery.destination.name} is paused", None, STAYS_HELD)
    return _next_try(delivery, delivery.next_at, now)


def _next_try(delivery: Delivery, at: datetime, now: datetime) -> NextStep:
    rests_until = delivery.destination.rests_until
    if delivery.state == DeliveryState.ACKED:
        what, follows = "a further copy is sent", STAYS_ACKED
    elif delivery.tries - delivery.tries_before >= MOST_TRIES:
        what, follows = "it becomes a dead letter unless it is acknowledged", STAYS_DEAD
    elif delivery.last_end == TryEnd.RECEIVED:
        what, follows = "it is sent again unless it is acknowledged", GOES_ON
    else:
        what, follows = "the next try", GOES_ON
    if rests_until is not None and rests_until > max(at, now):
        return NextStep(f"{what}, when {delivery.destination.name} has rested", rests_until, follows)
    return NextStep(f"{what}, due" if at < now else what, at, follows)


def _after(delivery: Delivery) -> str:
    """What a lost try leads to: one that was given up or acknowledged meanwhile stays so."""
    if _is_dead(delivery):
        return STAYS_DEAD
    return STAYS_ACKED if delivery.state == DeliveryState.ACKED else GOES_ON


def _is_dead(delivery: Delivery) -> bool:
    return delivery.state == DeliveryState.DEAD_LETTERED
