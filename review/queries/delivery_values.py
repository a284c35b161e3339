"""What the pages of deliveries show, as plain values: no page reads a model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ledger.rules.deliveries import TryEnd
from ledger.rules.next_step import NextStep
from ledger.rules.states import DeliveryState
from review.queries.marked import Segment
from review.queries.page import EventView
from review.queries.values import TenantView
from review.rights import Rights


@dataclass(frozen=True)
class DeliveryFilters:
    """Everything ANDed; an empty tuple or text filters nothing. `errors`: how the last try ended;
    `text` is looked for in the operation key."""

    states: tuple[DeliveryState, ...] = ()
    destination: str = ""  # its id
    errors: tuple[str, ...] = ()  # classes of error, or NEVER_TRIED
    tenants: tuple[str, ...] = ()  # slugs
    text: str = ""
    cursor: str = ""


@dataclass(frozen=True)
class DestinationName:
    """A destination to choose or to link to."""

    destination_id: str
    name: str
    tenant: TenantView
    paused: bool


@dataclass(frozen=True)
class DeliveryRow:
    """One consumer's copy of one settlement. `error` and `dead` are words, empty where there is nothing."""

    delivery_id: str
    destination: DestinationName
    operation_id: str
    operation_key: str
    tool: str
    sentence: str
    settlement: int
    outcome: str
    state: DeliveryState
    tries: int
    error: str
    dead: str
    created_at: datetime
    acked_at: datetime | None
    next_step: NextStep

    @property
    def tenant(self) -> TenantView:
        return self.destination.tenant


@dataclass(frozen=True)
class DeliveriesPage:
    """One page of deliveries, newest first."""

    rows: tuple[DeliveryRow, ...]
    tenants: tuple[TenantView, ...]
    destinations: tuple[DestinationName, ...]
    counts: DeliveryCounts
    next_cursor: str | None
    as_of: datetime


@dataclass(frozen=True)
class DeliveryCounts:
    """What needs somebody, in the tenants of one person."""

    dead_letters: int
    paused: int


@dataclass(frozen=True)
class HeaderView:
    """One header of a request or an answer."""

    name: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class TryRow:
    """One try in a line. Without an end it is under way, or its sender was lost and nobody knows how far it
    came (`interrupted`)."""

    number: int
    at: datetime
    ended_as: TryEnd | None
    words: str
    interrupted: bool
    status: int | None
    took_ms: int | None
    replay: bool


@dataclass(frozen=True)
class TryView:
    """One try whole. `answer`: the first 4 kB of the body, untrusted; `answer_cut`: there was more."""

    row: TryRow
    url: str
    request_headers: tuple[HeaderView, ...]
    answer_headers: tuple[HeaderView, ...]
    answer: tuple[Segment, ...]
    answer_bytes: int
    answer_cut: bool
    deceptive: int  # number of marked characters in it
    detail: tuple[Segment, ...]


@dataclass(frozen=True)
class AckView:
    """One acknowledgement. `agent` is empty where an answer was one; `duplicate`: it had it already."""

    at: datetime
    agent: str
    duplicate: bool


@dataclass(frozen=True)
class PressView:
    """One button: what pressing it does in one line, and why it cannot be pressed."""

    kind: str
    label: str
    consequence: str
    why_disabled: str = ""

    @property
    def enabled(self) -> bool:
        return not self.why_disabled


@dataclass(frozen=True)
class DeliveryPage:
    """Everything about one delivery. `tries` are the newest 100, newest first; `shown` is one of them."""

    row: DeliveryRow
    webhook_id: str
    ack: str
    held: bool
    dead_at: datetime | None
    owner_group: str
    body: tuple[Segment, ...]
    body_bytes: int
    tries: tuple[TryRow, ...]
    shown: TryView | None
    acks: tuple[AckView, ...]
    events: tuple[EventView, ...]
    presses: tuple[PressView, ...]
    rights: Rights
    as_of: datetime

    def press(self, kind: str) -> PressView:
        return next(press for press in self.presses if press.kind == kind)
