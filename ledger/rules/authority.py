"""Authority: facts when the attempt was made against facts now. Asked when a page or an answer shows what is
possible, when a person presses, and inside the transaction that gives leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from ledger.rules.pointers import glob_matches
from ledger.rules.vocabulary import Effect


class Reason(StrEnum):
    """Why leave is refused; the same words, in this order, on pages, in answers and in events."""

    TENANT_SUSPENDED = "tenant-suspended"
    AGENT_INACTIVE = "agent-inactive"
    OWNER_INACTIVE = "owner-inactive"
    KEY_REVOKED = "key-revoked"
    KEY_EXPIRED = "key-expired"
    SCOPE_REFUSED = "scope-refused"
    TARGET_REFUSED = "target-refused"
    OPERATION_CANCELLED = "operation-cancelled"
    EXPIRED = "expired"
    POLICY_REFUSED = "policy-refused"
    POLICY_CHANGED = "policy-changed"
    KEY_WINDOW_OVER = "key-window-over"
    ATTEMPTS_USED_UP = "attempts-used-up"
    BUDGET_EXHAUSTED = "budget-exhausted"
    APPROVAL_USED = "approval-used"
    APPROVAL_EXPIRED = "approval-expired"
    APPROVAL_STALE = "approval-stale"
    APPROVER_REFUSED = "approver-refused"


AUTHORITY_WORDS: Mapping[Reason, str] = {
    Reason.TENANT_SUSPENDED: "The tenant is suspended.",
    Reason.AGENT_INACTIVE: "The agent is switched off.",
    Reason.OWNER_INACTIVE: "The agent's owner is no longer active.",
    Reason.KEY_REVOKED: "The agent has no key that is not revoked.",
    Reason.KEY_EXPIRED: "The agent's key has expired.",
    Reason.SCOPE_REFUSED: "The agent's key does not cover this tool or call.",
    Reason.TARGET_REFUSED: "The agent's key does not cover this target.",
    Reason.OPERATION_CANCELLED: "The operation was cancelled.",
    Reason.EXPIRED: "The intent has expired.",
    Reason.POLICY_REFUSED: "The policy no longer allows this tool.",
    Reason.POLICY_CHANGED: "The rule changed since.",
    Reason.KEY_WINDOW_OVER: "The provider no longer honours the key.",
    Reason.ATTEMPTS_USED_UP: "All attempts are used.",
    Reason.BUDGET_EXHAUSTED: "The run's budget is used up.",
    Reason.APPROVAL_USED: "The approval was used.",
    Reason.APPROVAL_EXPIRED: "The approval expired.",
    Reason.APPROVAL_STALE: "The approval is for something else than would be sent now.",
    Reason.APPROVER_REFUSED: "Somebody who approved may no longer approve.",
}
"""One sentence for each, the same on pages, in answers and in events."""


def as_told(reasons: Iterable[Reason]) -> dict[str, list[str]]:
    """Reasons as answers and events carry them, in their order: the codes, and the same in words."""
    found = tuple(reasons)
    return {"reasons": [reason.value for reason in found], "words": [AUTHORITY_WORDS[r] for r in found]}


@dataclass(frozen=True)
class Then:
    """What the attempt says about itself, and which send of it is asked for.

    `resend`: an attempt of the operation was sent before. `absent_by_lookup`: that it had no effect, or that
    one it replaced had none, rests on a look-up's *absent* or on nothing. `key_window_ends_at`: first send
    with its key + `key_ttl_s`; None before the first send.
    """

    tool: str
    target: str | None
    effect: Effect
    rule_hash: str
    idempotent: bool
    expires_at: datetime | None
    with_approval: bool
    resend: bool
    absent_by_lookup: bool
    key_window_ends_at: datetime | None


@dataclass(frozen=True)
class KeyFacts:
    """One API key, seen from one tool and target."""

    revoked: bool
    expires_at: datetime | None
    covers_tool: bool
    covers_target: bool


@dataclass(frozen=True)
class ApprovalFacts:
    """The approval this send would use."""

    used: bool
    expires_at: datetime
    digest_equal: bool
    approvers_permitted: bool


# For leave where a send needs an approval and none is waiting: refused `approval-stale`, and nothing else.
NO_APPROVAL = ApprovalFacts(
    used=False, expires_at=datetime.max.replace(tzinfo=UTC), digest_equal=False, approvers_permitted=True
)


@dataclass(frozen=True)
class Now:
    """What holds at `at`, the database's time after the last lock.

    `keys`: the key that asks, or all of the agent's where the ledger sends. `rule_hash`: that of the tool's
    rule in the current policy, None where it refuses the tool. `attempts_used`: attempts given leave before
    this send. `budget_short`: why the run's budget does not allow it, in words; empty where it does.
    `approval`: None only where a page asks whether this could be approved; leave passes one, or
    NO_APPROVAL.
    """

    at: datetime
    tenant_active: bool
    agent_active: bool
    owner_active: bool
    keys: tuple[KeyFacts, ...]
    cancelled: bool
    rule_hash: str | None
    max_attempts: int
    attempts_used: int
    budget_short: tuple[str, ...]
    approval: ApprovalFacts | None


@dataclass(frozen=True)
class Allowed:
    """Nothing stands against this send."""


@dataclass(frozen=True)
class Refused:
    """At least one reason stands against it; all of them, in the fixed order. `because`: the budget's
    figures, in the words that button, answer and event share."""

    reasons: tuple[Reason, ...]
    because: tuple[str, ...] = ()

    @property
    def first(self) -> Reason:
        return self.reasons[0]


Predicate = Callable[[Then, Now], bool]


def check_authority(then: Then, now: Now) -> Allowed | Refused:
    """May this be sent now? Every row is asked, so the answer lists every reason at once."""
    reasons = tuple(reason for reason, refuses in ROWS if refuses(then, now))
    return Refused(reasons, now.budget_short) if reasons else Allowed()


def covers_tool(scopes: Iterable[str], tool: str) -> bool:
    """Does one of the `tool:GLOB` scopes match?"""
    return _covers(scopes, "tool:", tool)


def covers_target(scopes: Iterable[str], target: str | None) -> bool:
    """Does one of the `target:GLOB` scopes match? None: the rule names no target, nothing to cover. An empty
    text: the rule names one and the arguments do not have it, which no scope covers."""
    return target is None or (target != "" and _covers(scopes, "target:", target))


def is_usable(key: KeyFacts, at: datetime) -> bool:
    """Could this key alone carry the send?"""
    return not key.revoked and not _passed(key.expires_at, at) and key.covers_tool and key.covers_target


def _covers(scopes: Iterable[str], verb: str, text: str) -> bool:
    return any(scope.startswith(verb) and glob_matches(scope.removeprefix(verb), text) for scope in scopes)


def _passed(limit: datetime | None, at: datetime) -> bool:
    return limit is not None and at >= limit


@dataclass(frozen=True, order=True)
class _KeyAnswer:
    """Ordered like the reasons: of several keys the one that gets furthest speaks."""

    revoked: bool
    expired: bool
    tool_refused: bool
    target_refused: bool


_NO_KEY = _KeyAnswer(revoked=True, expired=False, tool_refused=False, target_refused=False)


def _best_key(now: Now) -> _KeyAnswer:
    """No key at all answers like a revoked one."""
    answers = [
        _KeyAnswer(
            revoked=key.revoked,
            expired=_passed(key.expires_at, now.at),
            tool_refused=not key.covers_tool,
            target_refused=not key.covers_target,
        )
        for key in now.keys
    ]
    return min(answers, default=_NO_KEY)


def _rule_changed(then: Then, now: Now) -> bool:
    return not then.with_approval and now.rule_hash is not None and now.rule_hash != then.rule_hash


def _key_window_over(then: Then, now: Now) -> bool:
    """Only an *absent* can be wrong about the past, so only there must the provider's key still protect."""
    if then.with_approval or then.effect is Effect.READ or not (then.resend and then.absent_by_lookup):
        return False
    ends_at = then.key_window_ends_at
    return not then.idempotent or ends_at is None or now.at >= ends_at


def _attempts_used_up(then: Then, now: Now) -> bool:
    return not then.with_approval and now.attempts_used >= now.max_attempts


def _approval_row(refuses: Callable[[ApprovalFacts, datetime], bool]) -> Predicate:
    def row(then: Then, now: Now) -> bool:
        return then.with_approval and now.approval is not None and refuses(now.approval, now.at)

    return row


ROWS: tuple[tuple[Reason, Predicate], ...] = (
    (Reason.TENANT_SUSPENDED, lambda _, now: not now.tenant_active),
    (Reason.AGENT_INACTIVE, lambda _, now: not now.agent_active),
    (Reason.OWNER_INACTIVE, lambda _, now: not now.owner_active),
    (Reason.KEY_REVOKED, lambda _, now: _best_key(now).revoked),
    (Reason.KEY_EXPIRED, lambda _, now: _best_key(now).expired),
    (Reason.SCOPE_REFUSED, lambda _, now: _best_key(now).tool_refused),
    (Reason.TARGET_REFUSED, lambda _, now: _best_key(now).target_refused),
    (Reason.OPERATION_CANCELLED, lambda _, now: now.cancelled),
    (Reason.EXPIRED, lambda then, now: _passed(then.expires_at, now.at)),
    (Reason.POLICY_REFUSED, lambda _, now: now.rule_hash is None),
    (Reason.POLICY_CHANGED, _rule_changed),
    (Reason.KEY_WINDOW_OVER, _key_window_over),
    (Reason.ATTEMPTS_USED_UP, _attempts_used_up),
    (Reason.BUDGET_EXHAUSTED, lambda _, now: bool(now.budget_short)),
    (Reason.APPROVAL_USED, _approval_row(lambda approval, _: approval.used)),
    (Reason.APPROVAL_EXPIRED, _approval_row(lambda approval, at: at >= approval.expires_at)),
    (Reason.APPROVAL_STALE, _approval_row(lambda approval, _: not approval.digest_equal)),
    (Reason.APPROVER_REFUSED, _approval_row(lambda approval, _: not approval.approvers_permitted)),
)
