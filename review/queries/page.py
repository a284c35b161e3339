"""What the page of one review item shows, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ledger.rules.authority import Reason
from ledger.rules.key_window import KeyWindow
from ledger.rules.next_step import NextStep
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind, Effect, ReviewReason
from review.queries.lane_values import Lanes
from review.queries.marked import Segment
from review.queries.values import Claim, Closing, ContentHash, Escalated, Owner, TenantView, WaitsOn
from review.rights import Rights


@dataclass(frozen=True)
class RecordView:
    """One record the provider showed. `data` is its JSON, untrusted."""

    reference: str
    content: str
    state: str
    data: str


@dataclass(frozen=True)
class LookUpView:
    """One answered question to the provider. `answer`: found, absent, unavailable, …; `words` says it."""

    id: int
    at: datetime
    answer: str
    words: str
    detail: str
    decided_row: str
    records: tuple[RecordView, ...]


@dataclass(frozen=True)
class Evidence:
    """What is in hand about one attempt. `lookups`: the newest five, newest first. `refused_credential`: what
    its provider does not take; somebody who runs the ledger has to mend it."""

    provider_request_id: str
    result_ref: str
    success_reported: bool
    dispatched_at: datetime | None
    lease_until: datetime | None
    lookups: tuple[LookUpView, ...]
    lookups_total: int
    checks: int
    max_checks: int
    next_check_at: datetime | None
    idempotency_key: str
    key_window: KeyWindow
    provider: str = ""
    refused_credential: str = ""
    credential_refused_since: datetime | None = None


@dataclass(frozen=True)
class Arguments:
    """The arguments to be judged, made from the stored bytes and nothing else.

    `text` is an indented rendering of those bytes; `segments` the same text, deceiving characters marked.
    Beyond 32 kB both are empty and `open_in_full` is set. `known` is False for a hash-only intent; `masked`
    lists the pointers whose values are hidden in `text`.
    """

    known: bool
    text: str
    segments: tuple[Segment, ...]
    deceptive: int  # number of marked characters
    size: int  # bytes as stored
    open_in_full: bool
    masked: tuple[str, ...]
    hash: ContentHash
    matches_hash: bool | None  # None: there are no bytes to compare


@dataclass(frozen=True)
class ThenNow:
    """One fact when the attempt was made and now. `reasons` are authority's words where it refuses."""

    name: str
    then: str
    now: str
    ok: bool
    words: str
    reasons: tuple[str, ...]
    refuses: bool = False  # even with an approval; not in order and no refusal is a warning


@dataclass(frozen=True)
class FieldChange:
    """One field that differs: `path` is a JSON pointer, None for a side that does not have it."""

    path: str
    before: str | None
    after: str | None


class DiffSide(StrEnum):
    """What the compared content is."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"  # a hash-only intent: nothing to look into


@dataclass(frozen=True)
class Comparison:
    """The arguments of this attempt against those of another one of the operation."""

    with_attempt_id: str
    with_number: int
    with_hash: ContentHash
    verdict: DiffSide
    changes: tuple[FieldChange, ...]
    more_changes: int  # beyond the first 100


@dataclass(frozen=True)
class TwinView:
    """The same call, in the same step of the same run, under another operation key."""

    operation_key: str
    number: int
    state: State
    sent: bool
    created_at: datetime
    open_item_id: str | None


@dataclass(frozen=True)
class AttemptView:
    """One link of the chain, oldest first."""

    attempt_id: str
    number: int
    state: State
    reason: str
    reason_words: str
    hash: ContentHash
    same_hash: bool  # as the attempt this page is about
    held: bool
    sent: bool
    descends_from: int | None  # the number
    created_at: datetime
    dispatched_at: datetime | None
    result_ref: str
    item_id: str | None  # its open review item
    is_this: bool


@dataclass(frozen=True)
class VoteView:
    """One yes that still counts toward an approval, or did."""

    by: str
    at: datetime
    expires_at: datetime
    why: str
    void_cause: str  # empty while it counts
    new_key: bool  # for a send with a new provider key


@dataclass(frozen=True)
class ApprovalView:
    """One approval: waiting, used, or void with its cause. Expiry is computed when read."""

    approval_id: str
    approved_at: datetime
    expires_at: datetime
    status: str  # waiting, used, void, expired
    void_cause: str
    void_words: str
    by: tuple[str, ...]
    attempt_number: int = 0  # of another attempt of the operation


@dataclass(frozen=True)
class Votes:
    """How far the vote is. `open` are counted; `may_still_vote` names people who could add one now;
    `earlier` are approvals of other attempts of the operation.

    `waiting` is the approval nobody has used yet. `lapsed`: why it no longer covers the send; `against`: what
    else authority holds against that send, approved or not.
    """

    needed: int
    open: tuple[VoteView, ...]
    voided: tuple[VoteView, ...]
    may_still_vote: tuple[str, ...]
    approvals: tuple[ApprovalView, ...]
    waiting: ApprovalView | None
    lapsed: tuple[Reason, ...] = ()
    against: tuple[Reason, ...] = ()
    earlier: tuple[ApprovalView, ...] = ()

    @property
    def holds(self) -> bool:
        """Does an approval wait that covers the send?"""
        return self.waiting is not None and not self.lapsed

    @property
    def for_new_key(self) -> bool:
        """Are the open ones for a send with a new provider key? A round is for one."""
        return any(vote.new_key for vote in self.open)

    @property
    def missing_words(self) -> str:
        """What is missing: `a second approval`, `2 more approvals`."""
        missing = self.needed - len(self.open)
        ordinal = {2: "a second", 3: "a third", 4: "a fourth"}.get(self.needed)
        return f"{ordinal} approval" if missing == 1 and ordinal else f"{missing} more approvals"


@dataclass(frozen=True)
class Ballot:
    """What this person's yes would be bound to; `digest` goes back with the press."""

    digest: str
    meaning: str
    meaning_segments: tuple[Segment, ...]
    expires_at: datetime
    dangerous: bool = False  # a payment, deletion or deployment: wants a fresh sign-in


@dataclass(frozen=True)
class StatementView:
    """What one person says became of it. `ended`: why it no longer waits for others, empty while it does;
    `settled`: it is what became of it; `contradicted_at`: a fact says otherwise since then."""

    by: str
    is_mine: bool
    at: datetime
    words: str
    happened: bool
    reference: str
    note: str
    look_up: LookUpView | None
    ended: str
    settled: bool
    contradicted_at: datetime | None


@dataclass(frozen=True)
class FactView:
    """One fact that contradicts: when, who told it, and the records or references it names."""

    at: datetime
    teller: str
    words: str


@dataclass(frozen=True)
class Sides:
    """What people say on one side, what facts say on the other. `needed`: so many must agree to settle it."""

    needed: int
    statements: tuple[StatementView, ...]
    facts: tuple[FactView, ...]

    @property
    def waiting(self) -> tuple[StatementView, ...]:
        return tuple(one for one in self.statements if not one.ended)

    @property
    def contradicted(self) -> tuple[str, ...]:
        """Whose settled word a fact contradicts."""
        return tuple(dict.fromkeys(one.by for one in self.statements if one.settled and one.contradicted_at))


@dataclass(frozen=True)
class ActionView:
    """One button: its consequence in one line, and why it is disabled. `answers`: what authority holds
    against a send as things are, and this press settles."""

    kind: DecisionKind
    label: str
    enabled: bool
    consequence: str
    why_disabled: tuple[str, ...]
    answers: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class DecisionView:
    """What a person chose, newest first."""

    kind: DecisionKind
    label: str
    by: str
    at: datetime
    why: str
    data: Mapping[str, object]


@dataclass(frozen=True)
class EventView:
    """One line of the history; `data` as canonical JSON text."""

    sequence: int
    kind: str
    actor_kind: str
    actor: str
    at: datetime
    attempt_number: int | None
    data: str
    hash: ContentHash


@dataclass(frozen=True)
class AssigneeView:
    """Somebody or some group of the tenant an item can be given to."""

    value: str  # user name, or "#group name"
    label: str


@dataclass(frozen=True)
class AgentWords:
    """Free text of the agent: shown apart, labelled untrusted, never the basis of a sentence of ours."""

    actor: tuple[Segment, ...]
    run: str
    step: str
    task_id: str
    cancel_reason: tuple[Segment, ...]


@dataclass(frozen=True)
class ItemPage:
    """Everything about one open or closed question."""

    item_id: str
    tenant: TenantView
    operation_id: str
    operation_key: str
    outcome: str
    attempt_id: str
    attempt_number: int
    agent: str
    agent_owner: str
    requested_by: str | None
    arguments_by: str | None
    tool: str
    effect: Effect
    effect_words: str
    state: State
    reason: ReviewReason
    reason_words: str
    not_known: str  # the sentence of what is not known
    headline: str  # the same while it is open; then what became of it
    sentence: str  # the rule's summary, filled from the arguments
    sentence_segments: tuple[Segment, ...]
    opened_at: datetime
    entered_state_at: datetime
    due_at: datetime
    overdue: bool
    escalated: Escalated | None
    closing: Closing | None
    owner: Owner
    claim: Claim | None
    ledger_sends: bool  # the next send needs no agent
    next_step: NextStep
    evidence: Evidence
    arguments: Arguments
    then_now: tuple[ThenNow, ...]
    may_send_now: bool  # authority as of now, an approval aside
    provider_keeps_keys: bool
    policy_changes: tuple[FieldChange, ...]
    chain: tuple[AttemptView, ...]
    comparisons: tuple[Comparison, ...]
    twins: tuple[TwinView, ...]
    votes: Votes
    ballot: Ballot | None
    sides: Sides
    actions: tuple[ActionView, ...]
    assignees: tuple[AssigneeView, ...]  # empty for somebody who may not assign
    agent_words: AgentWords
    decisions: tuple[DecisionView, ...]
    events: tuple[EventView, ...]  # the newest 100, newest first
    events_total: int
    head: int  # number of the newest event: it grows with every change of the operation
    lanes: Lanes
    rights: Rights
    as_of: datetime
    colleagues: tuple[AssigneeView, ...] = ()  # to whom this person may hand it over
    snoozed_until: datetime | None = None  # None once it is over
    waits_on: WaitsOn | None = None
