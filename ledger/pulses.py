"""When a part of the system last ran to its end, so that a page can say that one has stopped."""

from __future__ import annotations

from ledger.models import Pulse
from ledger.transactions import database_clock


def beat(name: str) -> None:
    Pulse.objects.update_or_create(name=name, defaults={"at": database_clock()})
