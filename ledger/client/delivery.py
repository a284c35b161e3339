"""Reports reach the ledger: written down first, then posted; what was left is posted later, in order."""

import logging
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
DETAILS = ("result_ref", "provider_request_id", "usage")
MAY_BE_RIGHT_LATER = frozenset({401, 403})  # another key may deliver it

log = logging.getLogger("ledger.client")


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


@dataclass(frozen=True)
class Told:
    """The answer to a fact, and the refusal of what of it will never be taken."""

    reply: Reply
    refused: Reply | None

    @property
    def fate(self) -> Fate:
        return fate_of(self.reply)


async def tell(transport: Transport, report: Report, *, tries: int | None = None) -> Told:
    """Post a fact. Where the ledger refuses a success for its details, it is told once more, without them: it
    can look up the reference, and must not take what is known for unknown."""
    reply = await _ask(transport, report, tries)
    refused = reply if fate_of(reply) is Fate.NEVER else None
    bare = bare_success(report)
    if refused is None or bare is None:
        return Told(reply, refused)
    log.warning(
        "the ledger refused a success (%s); it is told without its details %s",
        about_of(refused).body.get("detail"),
        {name: report.body[name] for name in DETAILS if name in report.body},
    )
    return Told(await _ask(transport, bare, tries), refused)


def bare_success(report: Report) -> Report | None:
    """A success without its details; None of what is no success, or has none."""
    bare = {name: value for name, value in report.body.items() if name not in DETAILS}
    is_bare = len(bare) == len(report.body)
    return None if is_bare or bare.get("outcome") != "succeeded" else Report(report.path, bare)


async def _ask(transport: Transport, report: Report, tries: int | None) -> Reply:
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
    """The answer, and what became of it: a refused one stays where it can neither be told nor put aside."""
    try:
        told = await tell(transport, kept.report, tries=tries)
        is_aside = told.refused is not None and life.put_aside(kept, _why(told.refused))
        if told.fate is Fate.DELIVERED and not is_aside:
            life.cross_out(kept)
        is_left = told.fate is Fate.NEVER and not is_aside
        return told.reply, Fate.LATER if is_left else told.fate
    finally:
        life.leave_if_under_way(kept)


def _why(refused: Reply) -> str:
    return f"refused with {refused.status} {refused.body.get('type', '')}"
