"""What the queue shows, as plain values: no page reads a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ledger.rules.key_window import KeyWindow
from ledger.rules.next_step import NextStep
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind, Effect, Escalation, ReviewReason

LONGEST_NUMBER = 9


class BadFilter(ValueError):
    """A filter or cursor that cannot be read; `field` names it, the message is for the person."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def number_in(field: str, text: str, refusal: str) -> int | None:
    """The number in an address, None where none stands there. Raises `BadFilter` for what is no number."""
    if text and not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER):
        raise BadFilter(field, refusal)
    return int(text) if text else None


class Tab(StrEnum):
    """The lists of the queue. `waiting` is approved work whose agent has not asked for leave yet; a snoozed
    item is on no other list of open ones."""

    MINE = "mine"
    TEAMS = "teams"
    UNOWNED = "unowned"
    ALL = "all"
    BACKING_OFF = "backing_off"
    SNOOZED = "snoozed"
    WAITING = "waiting"
    DECIDED = "decided"


TAB_LABELS: Mapping[Tab, str] = {
    Tab.MINE: "Mine",
    Tab.TEAMS: "My teams",
    Tab.UNOWNED: "Unowned",
    Tab.ALL: "All",
    Tab.BACKING_OFF: "Backing off",
    Tab.SNOOZED: "Snoozed",
    Tab.WAITING: "Waiting for agent",
    Tab.DECIDED: "Decided (24 h)",
}


@dataclass(frozen=True)
class QueueFilters:
    """Everything ANDed; an empty tuple or text filters nothing.

    `owner`: `me`, `none` (only the tenant's first group owns it), a user name, or `#group name`.
    `text` is looked for in the operation key and in the arguments the sentence is made of.
    """

    tab: Tab = Tab.ALL
    states: tuple[State, ...] = ()
    reasons: tuple[ReviewReason, ...] = ()
    tools: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()  # slugs
    owner: str = ""
    text: str = ""
    cursor: str = ""


@dataclass(frozen=True)
class ContentHash:
    """A content hash to show and to copy."""

    full: str

    @property
    def short(self) -> str:
        """First 8 and last 8 hex digits."""
        digits = self.full.rpartition(":")[2]
        return digits if len(digits) <= 16 else f"{digits[:8]}…{digits[-8:]}"


@dataclass(frozen=True)
class Escalated:
    """Since when time alone calls people to an item, and why."""

    at: datetime
    because: Escalation
    words: str


@dataclass(frozen=True)
class Owner:
    """Who answers for an item: always a group, perhaps one person of it, who may be active no more, or away
    from the work of this tenant."""

    group: str
    person: str | None
    is_me: bool
    person_is_active: bool = True
    away_until: datetime | None = None


@dataclass(frozen=True)
class WaitsOn:
    """Whom or what the people of an item wait for, in their words; `url` empty or plain https."""

    what: str
    url: str


@dataclass(frozen=True)
class Claim:
    """A live claim; expired ones are not shown."""

    by: str
    until: datetime
    is_mine: bool


@dataclass(frozen=True)
class Closing:
    """How and when an item was closed, and the last decision of a person about it, if there was one."""

    at: datetime
    how: str
    words: str  # approved by ada, found by a look-up
    decision: DecisionKind | None
    by: str | None


@dataclass(frozen=True)
class TenantView:
    """A tenant a person may see. `may_own`, where it was asked: and claim, assign or snooze work of."""

    id: int
    slug: str
    name: str
    suspended: bool
    may_own: bool = False


@dataclass(frozen=True)
class VotesSoFar:
    """Approvals that count toward a send, of those it needs."""

    given: int
    needed: int


@dataclass(frozen=True)
class QueueRow:
    """One line of the queue. `approval_until`: an unused approval waits for the agent until then; `votes`: a
    vote is under way."""

    item_id: str
    operation_id: str
    operation_key: str
    attempt_id: str
    attempt_number: int
    was_sent: bool
    tenant: TenantView
    tool: str
    effect: Effect
    high_risk: bool
    state: State
    reason: ReviewReason
    reason_words: str
    sentence: str
    hash: ContentHash
    opened_at: datetime
    entered_state_at: datetime
    due_at: datetime
    overdue: bool
    key_window: KeyWindow
    escalated: Escalated | None
    next_step: NextStep
    owner: Owner
    claim: Claim | None
    approval_until: datetime | None
    votes: VotesSoFar | None
    closing: Closing | None
    snoozed_until: datetime | None = None  # None once it is over
    waits_on: WaitsOn | None = None


@dataclass(frozen=True)
class QueuePage:
    """One page of the queue. `counts` obey the filters beside the tab. No `next_cursor`: the last page."""

    tab: Tab
    rows: tuple[QueueRow, ...]
    counts: Mapping[Tab, int]
    next_cursor: str | None
    tenants: tuple[TenantView, ...]
    tools: tuple[str, ...]
    last_sweep_at: datetime | None
    as_of: datetime

    @property
    def may_own(self) -> bool:
        """Whether this person may claim, assign or snooze anything anywhere."""
        return any(tenant.may_own for tenant in self.tenants)
