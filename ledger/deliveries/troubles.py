"""Which destinations hear nothing as they stand, in words, and what mends it. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ledger.deliveries.secrets import CannotUnseal, live_secrets
from ledger.models import Destination
from ledger.rules.deliveries import FAILURES_BEFORE_REST
from ledger.transactions import database_clock

_PAGE = "on its page under Destinations"


@dataclass(frozen=True)
class Trouble:
    """About which destination of which tenant, why it hears nothing, and what mends that."""

    tenant: str  # its slug
    destination_id: str
    about: str
    problem: str
    mend: str


def troubles_of_destinations() -> list[Trouble]:
    """Of every active tenant: no usable secret, paused, or nothing but failures of late."""
    active = Destination.objects.filter(tenant__suspended_at=None).select_related("tenant")
    return [
        Trouble(destination.tenant.slug, destination.pk, _words(destination), problem, mend)
        for destination in active.order_by("tenant__slug", "name")
        for problem, mend in _problems(destination)
    ]


def _words(destination: Destination) -> str:
    return f"destination {destination.name} of {destination.tenant.slug}"


def _problems(destination: Destination) -> Iterator[tuple[str, str]]:
    try:
        live_secrets(destination.pk, now=database_clock())
    except CannotUnseal as why:
        yield f"nothing is sent: {why}", f"put the key back into LEDGER_SEALING_KEYS, or rotate it {_PAGE}"
    if destination.paused_at is not None:
        since = f"{destination.paused_at:%Y-%m-%d %H:%M} UTC"
        yield f"paused ({destination.paused_because}) since {since}", f"resume it {_PAGE}"
    elif destination.failures >= FAILURES_BEFORE_REST and destination.failing_since is not None:
        since = f"{destination.failing_since:%Y-%m-%d %H:%M} UTC"
        problem = f"only fails: {destination.failures} tries in a row since {since}"
        yield problem, f"read why, and send it a test event, {_PAGE}"
