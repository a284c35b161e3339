"""A test event: is there somebody at this address who takes our signature? It tells of no operation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ledger.deliveries.destinations import note_change
from ledger.deliveries.posting import Posted, post
from ledger.deliveries.secrets import CannotUnseal, live_secrets
from ledger.events import Actor
from ledger.models import Destination
from ledger.models.ids import webhook_id
from ledger.rules.deliveries import TryEnd
from ledger.rules.webhooks import headers, trial_event
from ledger.transactions import database_clock, durable


@dataclass(frozen=True)
class TestResult:
    """`status`: the answer's, None where none came; `detail` is written for a person."""

    __test__ = False  # no test of ours

    ended_as: TryEnd
    status: int | None
    took_ms: int
    detail: str


def send_test(*, destination: Destination, actor: Actor) -> TestResult:
    """One signed message, one try, at once, also to a paused one; nothing is retried and no delivery or its
    health changes. It stands in the destination's history. Call it outside any transaction."""
    posted = _posted(destination, database_clock())
    durable(lambda: _note(destination, posted, actor))
    return TestResult(posted.end, posted.status, posted.took_ms, posted.detail)


def _posted(destination: Destination, now: datetime) -> Posted:
    try:
        secrets = live_secrets(destination.pk, now=now)
    except CannotUnseal as why:
        return Posted(TryEnd.NOT_SENT, detail=str(why))
    message = webhook_id()
    body = trial_event(message, tenant_slug=destination.tenant.slug, destination_id=destination.pk, at=now)
    return post(destination.url, headers=headers(message, at=now, body=body, secrets=secrets), body=body)


def _note(destination: Destination, posted: Posted, actor: Actor) -> None:
    note_change(
        destination,
        "tested",
        actor,
        database_clock(),
        ended_as=str(posted.end),
        status=posted.status,
        took_ms=posted.took_ms,
        detail=posted.detail[:300],
    )
