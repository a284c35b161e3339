"""Reports reach the ledger: written down first, then posted; what was left is posted later, in order."""

from dataclasses import dataclass
from enum import Enum

from ledger.client.answers import Reply
from ledger.client.errors import LedgerUnavailable
from ledger.client.lives import Life
from ledger.client.records import Kept
from ledger.client.transport import Transport

MAY_BE_RIGHT_LATER = frozenset({401, 403})  # another key may deliver it
STUCK_ALONE = frozenset({429, 500})  # no room for facts about unknown ids, or a fault of the ledger


class Fate(Enum):
    """What becomes of a report that was answered."""

    DELIVERED = "delivered"
    LATER = "later"
    NEVER = "never"


def fate_of(status: int) -> Fate:
    if status in {200, 201, 202}:
        return Fate.DELIVERED
    if 400 <= status < 500 and status not in MAY_BE_RIGHT_LATER:
        return Fate.NEVER
    return Fate.LATER


@dataclass(frozen=True)
class Delivered:
    """What one pass over a spool did, in reports: `refused` ones were put aside, `waiting` ones are left."""

    delivered: int = 0
    refused: int = 0
    waiting: int = 0

    def __add__(self, other: "Delivered") -> "Delivered":
        return Delivered(
            self.delivered + other.delivered, self.refused + other.refused, self.waiting + other.waiting
        )


async def deliver_new(transport: Transport, life: Life, kept: Kept) -> Reply:
    """Post a report, after those that were left about the same attempt. It stays kept where it cannot be."""
    life.claim(kept)
    try:
        while (before := life.take_before(kept)) is not None:
            reply = await _post(transport, life, before, tries=1)
            if fate_of(reply.status) is Fate.LATER:
                return reply
        return await _post(transport, life, kept)
    finally:
        life.leave_if_under_way(kept)


async def deliver_left(transport: Transport, life: Life) -> Delivered:
    """One try for everything that was left. What the ledger chokes on holds up its own attempt only."""
    fates: list[Fate] = []
    stuck: set[str] = set()
    while (kept := life.take(stuck)) is not None:
        try:
            reply = await _post(transport, life, kept, tries=1)
        except LedgerUnavailable as error:
            if error.about.status not in STUCK_ALONE:
                break
            stuck.add(kept.report.about)
            continue
        fates.append(fate_of(reply.status))
        if fates[-1] is Fate.LATER:
            break
    return Delivered(fates.count(Fate.DELIVERED), fates.count(Fate.NEVER), life.waiting)


async def _post(transport: Transport, life: Life, kept: Kept, *, tries: int | None = None) -> Reply:
    try:
        reply = await transport.call("POST", kept.report.path, kept.report.body, tries=tries)
        fate = fate_of(reply.status)
        if fate is Fate.DELIVERED:
            life.cross_out(kept)
        elif fate is Fate.NEVER:
            life.put_aside(kept, f"refused with {reply.status} {reply.body.get('type', '')}")
        return reply
    finally:
        life.leave_if_under_way(kept)
