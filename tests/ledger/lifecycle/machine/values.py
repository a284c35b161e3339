"""What the model of the attempt machine is made of: a tool, an attempt, the world outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

LIVE = {"INTENT_RECORDED", "DISPATCHED", "UNKNOWN", "FAILED_RETRYABLE"}
FINAL = {"OUTCOME_CONFIRMED", "FAILED", "CANCELLED", "SUPERSEDED"}
ASKED = {"UNKNOWN", "MANUAL_REVIEW"}
MAY_HAVE_HAPPENED = {"DISPATCHED", "UNKNOWN", "MANUAL_REVIEW"}
WHETHER_TO_SEND = {"not_idempotent", "key_window", "authority", "attempts", "approval", "approval_expired"}
PRICES = {"a": Decimal("1.25"), "b": Decimal(3), "c": Decimal("0.01"), "d": Decimal("2.50")}


@dataclass(frozen=True)
class Tool:
    """What of a rule the machine turns on; `rules` names the versions a policy may put in force."""

    lookup: bool = True
    idempotent: bool = True
    read: bool = False
    confirm_by_lookup: bool = False
    review_always: bool = False
    approvals: int = 1
    max_checks: int = 4
    max_attempts: int = 3

    @property
    def looks_up(self) -> bool:
        """Of what only reads, nobody asks."""
        return self.lookup and not self.read


@dataclass
class Approval:
    since: int
    voters: frozenset[str]


@dataclass(frozen=True)
class Answer:
    """What a look-up saw: what failed there, or nothing. `there`, `sent`: attempts made, or sent, by then."""

    failed: frozenset[str]
    absent: bool
    there: frozenset[int]
    sent: frozenset[int]

    def before(self, a: Tried) -> bool:
        """Was that before this one was sent, as far as anybody knows when it was?"""
        return a.number not in (self.there if a.maybe_sent else self.sent)


@dataclass
class Tried:
    """One attempt."""

    number: int
    content: str
    rule: str
    parent: int | None = None
    state: str = "INTENT_RECORDED"
    dispatched: bool = False
    maybe_sent: bool = False
    ever_held: bool = False
    closed: bool = False
    request: str = ""
    result: str = ""
    said_success: bool = False
    positive: bool = False
    conflict: bool = False  # an open item says that what is known contradicts itself
    evidence: list[set[str]] = field(default_factory=list)  # what each contradiction named
    reason: str = ""  # as far as later moves turn on it
    settled: bool = False
    spaced: bool = True
    negatives: int = 0
    checks: int = 0
    adapter_failures: int = 0
    last_answer: str = ""
    seen_there: bool = False  # the last answer showed it, done or under way
    answers: list[Answer] = field(default_factory=list)
    by_absent: bool = False
    proven: bool = False  # its agent knew that nothing had happened
    resting: bool = False
    votes: dict[str, int] = field(default_factory=dict)  # who, under which change of the rule
    approval: Approval | None = None
    said_calls: int = 0
    reserved: int = 0
    posted: int = 0

    @property
    def sent(self) -> bool:
        return self.dispatched or self.maybe_sent

    @property
    def is_over(self) -> bool:
        """Was it replaced, or sent in vain?"""
        return self.state == "SUPERSEDED" or (self.state == "FAILED" and self.sent)

    @property
    def doubtful(self) -> bool:
        """Replaced, although it may have happened."""
        certain = self.known_to_be_nothing and not self.by_absent
        return self.state == "SUPERSEDED" and self.sent and not certain

    @property
    def held(self) -> bool:
        return self.state == "MANUAL_REVIEW" and not self.sent

    @property
    def known_to_be_nothing(self) -> bool:
        return self.proven and not (self.said_success or self.positive)

    @property
    def whether_to_send(self) -> bool:
        return self.state == "MANUAL_REVIEW" and self.sent and self.reason in WHETHER_TO_SEND

    @property
    def live(self) -> bool:
        return self.state in LIVE or (self.state == "MANUAL_REVIEW" and self.dispatched)

    @property
    def own(self) -> set[str]:
        return {self.request, self.result} - {""}


@dataclass
class World:
    """What lies outside the operation."""

    rule: str = "first"  # which version of the tool's rule is in force; "none" refuses it
    since: int = 0  # how often it was changed
    key_live: bool = True
    tenant_active: bool = True
    limit: int | None = None
    money_limit: Decimal | None = None
