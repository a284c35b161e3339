"""Reports reach the ledger: written down first, then posted; what was left is posted later, in order."""

from dataclasses import dataclass
from enum import Enum

from ledger.client.answers import Reply, about_of
from ledger.client.errors import LedgerUnavailable
from ledger.client.lives import Life
from ledger.client.records import Kept, Report
from ledger.client.transport import Transport, sendable

NEVER_TAKEN = frozenset(
    {"malformed-json", "invalid-request", "body-too-large", "address-too-long", "not-found"}
)
"""The ledger's own words about a report that no waiting mends."""
MAY_BE_RIGHT_LATER = frozenset({401, 403})  # another key may deliver it


class Fate(Enum):
    """What becomes of a report that was answered."""

    DELIVERED = "delivered"
    LATER = "later"
    NEVER = "never"


def fate_of(reply: Reply) -> Fate:
    if reply.status in {200, 201, 202}:
        return Fate.DELIVERED
    return Fate.NEVER if about_of(reply).slug in NEVER_TAKEN else Fate.LATER


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


async def tell(transport: Transport, report: Report, *, tries: int | None = None) -> Reply:
    """Post a fact."""
    return await transport.call("POST", report.path, sendable(report.body), tries=tries)


async def deliver_new(transport: Transport, life: Life, kept: Kept) -> Reply:
    """Post a report, after those that were left about the same attempt. It stays kept where it cannot be."""
    life.claim(kept)
    try:
        while (before := life.take_before(kept)) is not None:
            reply, fate = await _post(transport, life, before, tries=1)
            if fate is Fate.LATER:
                return reply
        reply, _ = await _post(transport, life, kept)
        return reply
    finally:
        life.leave_if_under_way(kept)


async def deliver_left(transport: Transport, life: Life) -> Delivered:
    """One try for everything that was left. What the ledger chokes on holds up its own attempt only."""
    fates: list[Fate] = []
    stuck: set[str] = set()
    while (kept := life.take(stuck)) is not None:
        try:
            reply, fate = await _post(transport, life, kept, tries=1)
        except LedgerUnavailable as error:
            if not _is_about_one(error.about.status):
                break
            fate = Fate.LATER
        else:
            if fate is Fate.LATER and reply.status in MAY_BE_RIGHT_LATER:
                break
        fates.append(fate)
        if fate is Fate.LATER:
            stuck.add(kept.report.about)
    return Delivered(fates.count(Fate.DELIVERED), fates.count(Fate.NEVER), life.waiting)


def _is_about_one(status: int) -> bool:
    """No room for facts about unknown ids, a fault of the ledger, or what something on the way refuses: the
    next report may be answered otherwise."""
    return status == 500 or 400 <= status < 500


async def _post(
    transport: Transport, life: Life, kept: Kept, *, tries: int | None = None
) -> tuple[Reply, Fate]:
    """The answer, and what became of it: also one that is refused stays where nobody can be told."""
    try:
        reply = await tell(transport, kept.report, tries=tries)
        fate = fate_of(reply)
        if fate is Fate.DELIVERED:
            life.cross_out(kept)
        elif fate is Fate.NEVER and not life.put_aside(kept, _why(reply)):
            fate = Fate.LATER
        return reply, fate
    finally:
        life.leave_if_under_way(kept)


def _why(refused: Reply) -> str:
    return f"refused with {refused.status} {refused.body.get('type', '')}"
