"""The page of one delivery: its tries as they were made and answered, and what can be done."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ledger.models import Delivery, DeliveryAck, DeliveryTry, User
from ledger.policies import rule_as_shown, veil_over
from ledger.rules.deliveries import TryEnd
from ledger.rules.masks import Veil
from ledger.rules.states import DeliveryState
from ledger.transactions import database_clock, one_reading
from review.door import enter_row, right_needed
from review.queries.arguments import indented
from review.queries.delivery_rows import RELATED, delivery_row
from review.queries.delivery_values import (
    AckView,
    DeliveryPage,
    HeaderView,
    PressView,
    TryRow,
    TryView,
)
from review.queries.delivery_words import END_WORDS
from review.queries.history import event_view
from review.queries.marked import deceptive_characters, marked_text
from review.queries.page import EventView
from review.queries.values import BadFilter, number_in
from review.rights import Rights

NEWEST_TRIES = 100
NEWEST_ACKS = 20
NEWEST_EVENTS = 50


def enter_delivery(user: User, delivery_id: str) -> tuple[Delivery, Rights]:
    """The delivery, if this person may see it. Raises `NotVisible`."""
    rows = Delivery.objects.select_related(*RELATED, "settlement__attempt__policy", "owner_group")
    return enter_row(user, rows.filter(pk=delivery_id).first(), delivery_id)


def delivery_page(user: User, delivery_id: str, *, shown_try: str = "") -> DeliveryPage:
    """Everything about one delivery; `shown_try` is the number of the try to show whole (empty: the newest).
    Raises `NotVisible`, and `BadFilter` where there is no such try."""
    delivery, rights = enter_delivery(user, delivery_id)
    now = database_clock()
    with one_reading():
        attempt = delivery.settlement.attempt
        rule, veil = rule_as_shown(attempt), veil_over(attempt)
    tries = _tries(delivery)
    body = veil.over_text(bytes(delivery.body or b"").decode())
    return DeliveryPage(
        row=delivery_row(delivery, rule, now),
        webhook_id=delivery.webhook_id,
        ack=delivery.destination.ack,
        held=delivery.held_at is not None,
        dead_at=delivery.dead_at if delivery.state == DeliveryState.DEAD_LETTERED else None,
        owner_group=delivery.owner_group.name if delivery.owner_group else "",
        body=marked_text(indented(body)),
        body_bytes=len(delivery.body or b""),
        tries=tuple(_try_row(made, delivery, now) for made in tries),
        shown=_shown(delivery, shown_try, veil, now),
        acks=_acks(delivery),
        events=_events(delivery, veil),
        presses=(_redeliver(delivery, rights, now), _dead_letter(delivery, rights, now)),
        rights=rights,
        as_of=now,
    )


def _tries(delivery: Delivery) -> list[DeliveryTry]:
    """The newest, without what was sent and answered."""
    heavy = ("sent_headers", "answer_headers", "answer_head", "detail")
    return list(delivery.sent_tries.defer(*heavy).order_by("-number")[:NEWEST_TRIES])


def _try_row(made: DeliveryTry, delivery: Delivery, now: datetime) -> TryRow:
    under_way = _is_under_way(made, delivery, now)
    if made.ended_as is not None:
        words = END_WORDS[made.ended_as]
    elif under_way:
        words = "Under way"
    else:
        words = "Interrupted: its sender was lost, it may have been received"
    return TryRow(
        number=made.number,
        at=made.at,
        ended_as=TryEnd(made.ended_as) if made.ended_as else None,
        words=words,
        interrupted=made.ended_as is None and not under_way,
        status=made.status,
        took_ms=made.took_ms,
        replay=made.replay,
    )


def _is_under_way(made: DeliveryTry, delivery: Delivery, now: datetime) -> bool:
    holds_lease = made.lease_epoch == delivery.lease_epoch and delivery.lease_until is not None
    return made.ended_as is None and holds_lease and delivery.lease_until > now  # type: ignore[operator]


def _shown(delivery: Delivery, asked_for: str, veil: Veil, now: datetime) -> TryView | None:
    number = number_in("try", asked_for, "A try has a number.")
    tries = delivery.sent_tries.order_by("-number")
    made = tries.first() if number is None else tries.filter(number=number).first()
    if made is None and number is not None:
        raise BadFilter("try", f"This delivery has no try {number}.")
    return None if made is None else _try_view(made, delivery, veil, now)


def _try_view(made: DeliveryTry, delivery: Delivery, veil: Veil, now: datetime) -> TryView:
    answer = bytes(made.answer_head or b"")
    segments = marked_text(veil.over_text(answer.decode("utf-8", "backslashreplace")))
    return TryView(
        row=_try_row(made, delivery, now),
        url=made.url,
        request_headers=_headers(made.sent_headers, veil),
        answer_headers=_headers(made.answer_headers, veil),
        answer=segments,
        answer_bytes=len(answer),
        answer_cut=bool(made.answer_cut),
        deceptive=deceptive_characters(segments),
        detail=marked_text(veil.over_text(made.detail or "")),
    )


def _headers(headers: Mapping[str, Any] | None, veil: Veil) -> tuple[HeaderView, ...]:
    named = sorted((headers or {}).items())
    return tuple(HeaderView(name, marked_text(veil.over_text(str(value)))) for name, value in named)


def _acks(delivery: Delivery) -> tuple[AckView, ...]:
    acks = DeliveryAck.objects.filter(delivery=delivery).select_related("key__agent").order_by("-at", "-pk")
    return tuple(
        AckView(ack.at, ack.key.agent.name if ack.key else "", ack.duplicate) for ack in acks[:NEWEST_ACKS]
    )


def _events(delivery: Delivery, veil: Veil) -> tuple[EventView, ...]:
    """What the operation's history says of this delivery, newest first."""
    about = delivery.operation.events.filter(
        kind__startswith="delivery.", body__contains=f'"delivery":"{delivery.pk}"'
    )
    return tuple(event_view(event, {}, veil) for event in about.order_by("-sequence")[:NEWEST_EVENTS])


def _redeliver(delivery: Delivery, rights: Rights, now: datetime) -> PressView:
    destination, number = delivery.destination, delivery.settlement.number
    says = (
        f"Sends the stored result of settlement {number} to {destination.name} once more, under the same "
        f"webhook id. No tool runs."
    )
    if delivery.state == DeliveryState.ACKED:
        says += " It is acknowledged and stays so; the consumer gets one further copy, marked as a replay."
    if destination.paused_at is not None:
        says += f" {destination.name} is paused: it is held until somebody resumes that."
    elif destination.rests_until is not None and destination.rests_until > now:
        says += f" {destination.name} rests after failures, so it is sent when that is over."
    waiting = delivery.state in (DeliveryState.PENDING, DeliveryState.SENT)
    why = "It is still being tried by itself." if waiting else ""
    return PressView("redeliver", "Redeliver", says, _no_right(delivery, rights) or why)


def _dead_letter(delivery: Delivery, rights: Rights, now: datetime) -> PressView:
    says = "Makes no further try: it is a dead letter of the tenant’s group until somebody redelivers it."
    if delivery.lease_until is not None and delivery.lease_until > now:
        says += " The try under way may still arrive."
    waits = delivery.state in (DeliveryState.PENDING, DeliveryState.SENT)
    why = "" if waits else "Nothing of it is waiting to be sent."
    return PressView("dead-letter", "Dead-letter", says, _no_right(delivery, rights) or why)


def _no_right(delivery: Delivery, rights: Rights) -> str:
    return "" if rights.decide else right_needed(delivery.tenant, "decide_work")
