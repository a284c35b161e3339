"""Destinations: added, paused, resumed, given a new secret. Each change is a line of its own history."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.db import transaction

from ledger.deliveries.secrets import give_secret
from ledger.events import Actor
from ledger.http import check_address
from ledger.models import Destination, DestinationChange
from ledger.rules.deliveries import PauseReason
from ledger.transactions import database_clock, require_transaction

log = structlog.get_logger(__name__)

OVERLAP = timedelta(hours=24)
"""How long the secret before signs beside a new one, unless whoever rotates says otherwise."""

WELL: Mapping[str, Any] = {"failures": 0, "failing_since": None, "rests_until": None}
"""A destination without a record of failures."""


def add_destination(
    *, tenant_id: int, name: str, url: str, ack: str, actor: Actor, tool_globs: tuple[str, ...] = ()
) -> tuple[Destination, str]:
    """A new destination and its secret as text, which is shown this once. It hears of settlements from now
    on. Raises AddressRefused where it must not be asked: of a name that is said when it is resolved, by
    `check_address` before the transaction and at every send; IntegrityError where the tenant has one of this
    name."""
    require_transaction()
    check_address(url, resolve=False)
    now = database_clock()
    added = Destination.objects.create(
        tenant_id=tenant_id, name=name, url=url, ack=ack, tool_globs=list(tool_globs)
    )
    secret = give_secret(added, now=now)
    note_change(added, "added", actor, now, url=url, ack=ack)
    return added, secret


def pause(
    destination: Destination, reason: PauseReason, *, actor: Actor, now: datetime, why: str = ""
) -> None:
    """Send it nothing more; what waits for it is held. Pausing a paused one changes nothing."""
    require_transaction()
    row = Destination.objects.filter(pk=destination.pk, paused_at=None)
    if row.update(paused_at=now, paused_because=reason):
        destination.paused_at, destination.paused_because = now, reason
        note_change(destination, "paused", actor, now, why=why, reason=str(reason))
        if reason is not PauseReason.PERSON:
            transaction.on_commit(partial(_tell_outside, destination, reason), robust=True)


def _tell_outside(destination: Destination, reason: PauseReason) -> None:
    """Nobody stood by: whoever watches the logs or `ledger_paused_destinations` hears of it."""
    log.error(
        "destination_paused",
        destination=destination.pk,
        destination_name=destination.name,
        tenant=destination.tenant_id,
        reason=str(reason),
    )


def resume(destination: Destination, *, actor: Actor, now: datetime, why: str = "") -> None:
    """Send it what was held, as fast as its places allow, with its record of failures forgotten."""
    require_transaction()
    row = Destination.objects.filter(pk=destination.pk).exclude(paused_at=None)
    if row.update(paused_at=None, paused_because="", **WELL):
        note_change(destination, "resumed", actor, now, why=why)


def rotate_secret(
    destination: Destination, *, actor: Actor, now: datetime, overlap: timedelta = OVERLAP
) -> str:
    """A new secret, shown this once; the one before signs beside it until the overlap is over."""
    secret = give_secret(destination, now=now, overlap=overlap)
    note_change(destination, "secret_rotated", actor, now, overlap_s=int(overlap.total_seconds()))
    return secret


def note_change(
    destination: Destination, kind: str, actor: Actor, now: datetime, *, why: str = "", **data: object
) -> None:
    """One line of the destination's own history."""
    DestinationChange.objects.create(
        tenant_id=destination.tenant_id,
        destination=destination,
        kind=kind,
        actor=actor.name,
        why=why,
        data=data,
        at=now,
    )
