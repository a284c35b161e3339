"""`manage.py destination pause|resume|rotate NAME --tenant SLUG`: what administrators do on its page."""

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from ledger.deliveries import pause, resume, rotate_secret
from ledger.events import SYSTEM
from ledger.management.command import Answer, Exit, LedgerCommand, Stopped, tenant_named
from ledger.models import Destination, Tenant
from ledger.rules.deliveries import PauseReason
from ledger.transactions import database_clock, durable

LONGEST_OVERLAP_H = 24 * 30


class Command(LedgerCommand):
    help = (
        "Pause or resume a destination, or give it a new secret beside which the old one signs for a while."
    )

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["pause", "resume", "rotate"])
        parser.add_argument("name")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--why", default="", help="kept in the destination's history")
        parser.add_argument(
            "--overlap-h",
            type=float,
            default=24.0,
            metavar="HOURS",
            help="how long the secret before a rotated one still signs (default 24)",
        )

    def answer(self, *, what: str, name: str, why: str, overlap_h: float, **options: Any) -> Answer:
        if not 0 <= overlap_h <= LONGEST_OVERLAP_H:
            raise Stopped(Exit.USAGE, f"An overlap is between 0 and {LONGEST_OVERLAP_H} hours.")
        tenant = tenant_named(options["tenant"])
        return durable(lambda: _done(what, _locked(name, tenant), why, timedelta(hours=overlap_h)))


def _locked(name: str, tenant: Tenant) -> Destination:
    found = Destination.objects.select_for_update(no_key=True).filter(tenant=tenant, name=name).first()
    if found is None:
        raise Stopped(Exit.USAGE, f"Tenant {tenant.slug} has no destination {name!r}.")
    return found


def _done(what: str, destination: Destination, why: str, overlap: timedelta) -> Answer:
    now = database_clock()
    if what == "rotate":
        return _rotated(destination, overlap, now)
    if (what == "pause") == (destination.paused_at is not None):
        standing = "paused already" if what == "pause" else "not paused"
        raise Stopped(Exit.CONFLICT, f"Destination {destination.name} is {standing}; nothing was changed.")
    if what == "pause":
        pause(destination, PauseReason.PERSON, actor=SYSTEM, now=now, why=why)
        return Answer(f"Paused {destination.name}: what is settled for it is held.", _data(destination, what))
    resume(destination, actor=SYSTEM, now=now, why=why)
    return Answer(f"Resumed {destination.name}: what was held is sent.", _data(destination, what))


def _rotated(destination: Destination, overlap: timedelta, now: datetime) -> Answer:
    secret = rotate_secret(destination, actor=SYSTEM, now=now, overlap=overlap)
    return Answer(
        f"Rotated the secret of {destination.name}; the one before signs beside it for "
        f"{overlap.total_seconds() / 3600:g} h.\nIts secret, shown this once: {secret}",
        {**_data(destination, "rotate"), "secret": secret, "overlap_s": overlap.total_seconds()},
    )


def _data(destination: Destination, did: str) -> Mapping[str, object]:
    return {"destination_id": destination.pk, "name": destination.name, "did": did}
