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
from ledger.rules.deliveries import Follows, TryEnd, TryFacts, after_try, retry_after_s
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
    by_delivery = {ended.claim.delivery_id: ended for ended in ends}
    operations = _locked_operations({ended.claim.operation_id for ended in by_delivery.values()})
    deliveries = _locked_deliveries(by_delivery)
    now = database_clock()
    for delivery in deliveries:
        delivery.operation = operations[delivery.operation_id]
        _record(delivery, by_delivery[delivery.pk], now)
    fault_point("delivery.before_commit")
    return {delivery.pk: DeliveryState(delivery.state) for delivery in deliveries}


def _locked_operations(ids: Iterable[str]) -> dict[str, Operation]:
    rows = Operation.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
    return {operation.pk: operation for operation in rows}


def _locked_deliveries(ids: Iterable[str]) -> list[Delivery]:
    rows = Delivery.objects.select_for_update(no_key=True, of=("self",)).select_related(
        "destination", "settlement"
    )
    return list(rows.filter(pk__in=list(ids)).order_by("pk"))


def _record(delivery: Delivery, ended: Ended, now: datetime) -> None:
    """A sender that lost its lease only adds what it saw; but a receipt is a fact, whoever brings it."""
    _write_end(ended, now)
    is_receipt = ended.posted.end is TryEnd.RECEIVED and delivery.destination.ack == "response"
    if delivery.lease_epoch != ended.claim.epoch:
        if is_receipt:
            acknowledge(delivery, actor=SENDER, now=now)
        return
    asked_s = retry_after_s(ended.posted.answer_headers.get("retry-after", ""), now)
    follows = after_try(_facts(delivery), ended.posted.end, retry_after_s=asked_s, roll=random.random())  # noqa: S311
    _follow(delivery, ended, follows, now)
    health.note(delivery.destination, ended.posted.end, now=now)


def _facts(delivery: Delivery) -> TryFacts:
    explicit = delivery.destination.ack == "explicit"
    return TryFacts(
        state=DeliveryState(delivery.state),
        tries=delivery.tries - delivery.tries_before,
        ack_deadline_s=delivery.destination.ack_deadline_s if explicit else None,
    )


def _follow(delivery: Delivery, ended: Ended, follows: Follows, now: datetime) -> None:
    delivery.last_end = ended.posted.end
    delivery.lease_until = None
    delivery.next_at = None if follows.wait_s is None else now + timedelta(seconds=follows.wait_s)
    delivery.held_at = now if follows.held or _is_paused(delivery, follows) else None
    if delivery.held_at is not None:
        delivery.next_at = None
    if follows.state is DeliveryState.ACKED:
        acknowledge(delivery, actor=SENDER, now=now)
    elif follows.dead_reason is not None:
        dead_letter(delivery, follows.dead_reason, actor=SENDER, now=now)
    elif follows.state is DeliveryState.SENT and delivery.state == DeliveryState.PENDING:
        mark_sent(delivery, actor=SENDER, now=now)
    delivery.save(update_fields=["last_end", "lease_until", "next_at", "held_at"])


def _is_paused(delivery: Delivery, follows: Follows) -> bool:
    """Its destination was paused while this try was under way."""
    return follows.wait_s is not None and delivery.destination.paused_at is not None


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
