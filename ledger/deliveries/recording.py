"""Write down how tries ended, and what follows: the only place where a delivery changes state by a try.

Locks in the order of the whole house: operations by id, deliveries by id, destination, events.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ledger.deliveries import health
from ledger.deliveries.claiming import Claim
from ledger.deliveries.moves import acknowledge, dead_letter, mark_sent
from ledger.deliveries.posting import Posted
from ledger.events import SENDER
from ledger.faults import fault_point
from ledger.models import Delivery, DeliveryTry, Operation
from ledger.rules.deliveries import (
    Follows,
    TryEnd,
    TryFacts,
    after_try,
    is_acknowledgement,
    retry_after_s,
)
from ledger.rules.states import DeliveryState
from ledger.transactions import database_clock, require_transaction

KEPT_BYTES = 4_096
KEPT_HEADERS = 40
KEPT_HEADER_CHARACTERS = 500


@dataclass(frozen=True)
class Ended:
    """How one claimed try ended."""

    claim: Claim
    posted: Posted


def record_ends(ends: Iterable[Ended]) -> dict[str, DeliveryState]:
    """Record tries, each for itself, in one transaction. Returns the state of each delivery afterwards."""
    require_transaction()
    by_age = sorted(ends, key=lambda ended: (ended.claim.delivery_id, ended.claim.epoch))
    operations = _locked_operations({ended.claim.operation_id for ended in by_age})
    deliveries = _locked_deliveries({ended.claim.delivery_id for ended in by_age})
    now = database_clock()
    for ended in by_age:
        delivery = deliveries[ended.claim.delivery_id]
        delivery.operation = operations[delivery.operation_id]
        _record(delivery, ended, now)
    _note_health(by_age, deliveries, now)
    fault_point("delivery.before_commit")
    return {delivery.pk: DeliveryState(delivery.state) for delivery in deliveries.values()}


def _locked_operations(ids: Iterable[str]) -> dict[str, Operation]:
    rows = Operation.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
    return {operation.pk: operation for operation in rows}


def _locked_deliveries(ids: Iterable[str]) -> dict[str, Delivery]:
    rows = Delivery.objects.select_for_update(no_key=True, of=("self",)).select_related(
        "destination", "settlement"
    )
    return {delivery.pk: delivery for delivery in rows.filter(pk__in=list(ids)).order_by("pk")}


def _record(delivery: Delivery, ended: Ended, now: datetime) -> None:
    """A sender that lost its lease only adds what it saw; but a receipt is a fact, whoever brings it."""
    _write_end(ended, now)
    if _holds_the_lease(delivery, ended):
        _follow(delivery, ended.posted, now)
    elif is_acknowledgement(ended.posted.end, explicit=delivery.destination.ack == "explicit"):
        acknowledge(delivery, actor=SENDER, now=now)


def _holds_the_lease(delivery: Delivery, ended: Ended) -> bool:
    return delivery.lease_epoch == ended.claim.epoch


def _note_health(ends: Iterable[Ended], deliveries: Mapping[str, Delivery], now: datetime) -> None:
    """In the destinations' order, so that two who record failures at once never wait for each other."""
    by_destination = sorted(ends, key=lambda ended: ended.claim.destination_id)
    for ended in by_destination:
        delivery = deliveries[ended.claim.delivery_id]
        if _holds_the_lease(delivery, ended):
            health.note(delivery.destination, ended.posted.end, now=now)


def _follow(delivery: Delivery, posted: Posted, now: datetime) -> None:
    asked_s = retry_after_s(posted.answer_headers.get("retry-after", ""), now)
    facts = _facts(delivery)
    follows = after_try(facts, posted.end, retry_after_s=asked_s, roll=random.random())  # noqa: S311
    delivery.last_end, delivery.lease_until = posted.end, None
    if facts.tries:  # else a person asked for a further try while this one was under way
        _schedule(delivery, follows, now)
    if posted.end is TryEnd.NOT_SENT:
        delivery.tries_before = min(delivery.tries, delivery.tries_before + 1)
    _move(delivery, follows, now)
    delivery.save(update_fields=["last_end", "lease_until", "next_at", "held_at", "tries_before"])


def _facts(delivery: Delivery) -> TryFacts:
    explicit = delivery.destination.ack == "explicit"
    return TryFacts(
        state=DeliveryState(delivery.state),
        tries=delivery.tries - delivery.tries_before,
        ack_deadline_s=delivery.destination.ack_deadline_s if explicit else None,
    )


def _schedule(delivery: Delivery, follows: Follows, now: datetime) -> None:
    """The next try, where one follows; held where its destination was paused while this one was under way."""
    paused = follows.wait_s is not None and delivery.destination.paused_at is not None
    delivery.held_at = now if follows.held or paused else None
    waits = follows.wait_s is not None and delivery.held_at is None
    delivery.next_at = now + timedelta(seconds=follows.wait_s or 0) if waits else None


def _move(delivery: Delivery, follows: Follows, now: datetime) -> None:
    if follows.acknowledged:
        acknowledge(delivery, actor=SENDER, now=now)
    elif follows.dead_reason is not None:
        dead_letter(delivery, follows.dead_reason, actor=SENDER, now=now)
    elif follows.state is DeliveryState.SENT and delivery.state == DeliveryState.PENDING:
        mark_sent(delivery, actor=SENDER, now=now)


def _write_end(ended: Ended, now: datetime) -> None:
    posted = ended.posted
    DeliveryTry.objects.filter(pk=ended.claim.try_id, ended_at=None).update(
        ended_at=now,
        ended_as=posted.end,
        sent_headers=dict(posted.sent_headers),
        status=posted.status,
        answer_headers=_kept_headers(posted.answer_headers),
        answer_head=posted.answer[:KEPT_BYTES],
        answer_cut=posted.answer_cut or len(posted.answer) > KEPT_BYTES,
        detail=_storable(posted.detail[:1000]),
        took_ms=posted.took_ms,
    )


def _kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The first of them, shortened: a consumer's answer is shown, never trusted with our space."""
    kept = list(headers.items())[:KEPT_HEADERS]
    return {_storable(name[:100]): _storable(value[:KEPT_HEADER_CHARACTERS]) for name, value in kept}


def _storable(text: str) -> str:
    """Without what PostgreSQL cannot keep: a try whose end cannot be stored would be made again and again."""
    return text.encode("utf-8", "replace").decode().replace("\0", "�")
