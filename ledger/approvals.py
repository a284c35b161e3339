"""What one vote is bound to, and whether an approval still covers exactly what is about to be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from django.db.models import Max, Q, QuerySet

from ledger.models import Agent, Approval, Attempt, PolicySnapshot, Vote
from ledger.policies import InForce, hiding_too, rule_changes, rule_in_force, rule_of, rule_since
from ledger.queries.arguments import sentence_of
from ledger.rules.authority import ApprovalFacts
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.digest import vote_digest
from ledger.rules.key_window import KeyWindow
from ledger.rules.policy import Rule
from ledger.rules.vocabulary import HIGH_RISK, Effect
from ledger.rules.voiding import EDITED_LATELY


class Duty(StrEnum):
    """A part in an attempt that keeps a person from approving it."""

    OWNS_AGENT = "owns the agent"
    ASKED = "asked for it"
    CORRECTED = "corrected its arguments"
    CHANGED_RULE = "last changed the rule"
    CORRECTED_LATELY = "edited arguments of this operation within 24 h"
    CHANGED_RULE_LATELY = "edited the rule within 24 h"


class Approvers(Protocol):
    """Who may approve, as the review app knows it."""

    def may_approve(self, *, user_id: int, tenant_id: int, tool: str, effect: Effect) -> bool:
        """Whether this person may, now, approve a send of this tool with this effect."""
        ...

    def may_decide(self, *, user_id: int, tenant_id: int) -> bool:
        """Whether this person may, now, decide the work of this tenant."""
        ...


class _Nobody:
    def may_approve(self, **_: object) -> bool:
        return False

    def may_decide(self, **_: object) -> bool:
        return False


_approvers: Approvers = _Nobody()


def register_approvers(approvers: Approvers) -> None:
    """The review app answers from now on; until it does, nobody may approve."""
    global _approvers  # noqa: PLW0603
    _approvers = approvers


@dataclass(frozen=True)
class Binding:
    """Everything an approver is shown and a vote is bound to, beside who votes and until when."""

    attempt: Attempt
    policy: PolicySnapshot
    rule: Rule
    sentence: str
    meaning: str
    generation: int
    since: int = 0  # the policy since which the rule is what it is; a yes from before is none

    @property
    def needed(self) -> int:
        return self.rule.needed_approvals

    @property
    def vote_life_s(self) -> float:
        return self.rule.vote_life_s

    @property
    def shown(self) -> str:
        """One hash of what a page shows; posted back with the vote, so that a change in between is seen."""
        attempt = self.attempt
        parts = [
            attempt.tenant_id,
            attempt.pk,
            attempt.args_hash,
            self.rule.rule_hash,
            sorted(attempt.scopes),
            self.meaning,
        ]
        return content_hash(canonical_bytes(parts))

    def digest(self, *, approver_id: int, expires_at: datetime) -> str:
        """The digest of one person's vote."""
        would_be = Vote(
            generation=self.generation, approver_id=approver_id, meaning=self.meaning, expires_at=expires_at
        )
        return _digest_of(would_be, self.attempt, self.rule.rule_hash, self.attempt.scopes)


def binding_of(attempt: Attempt, window: KeyWindow, *, new_provider_key: bool = False) -> Binding | None:
    """What a vote for a new send of this attempt would mean now; None where the policy refuses the tool.
    `window`: that of its provider key, as it stands now."""
    in_force = rule_in_force(attempt.tenant_id, attempt.tool)
    if in_force.rule is None or in_force.snapshot is None:
        return None
    sentence = sentence_of(attempt, hiding_too(in_force.rule, rule_of(attempt)))
    return Binding(
        attempt=attempt,
        policy=in_force.snapshot,
        rule=in_force.rule,
        sentence=sentence,
        meaning=_meaning(attempt, sentence, window, new_provider_key=new_provider_key),
        generation=newest_generation(attempt.operation_id) + 1 if new_provider_key else attempt.generation,
        since=rule_since(attempt.tenant_id, attempt.tool),
    )


def newest_generation(operation_id: str) -> int:
    """The highest generation of provider key that any attempt of the operation has; 0 where there is none."""
    newest = Attempt.objects.filter(operation_id=operation_id).aggregate(newest=Max("generation"))["newest"]
    return int(newest or 0)


def unused_generation(operation_id: str) -> int:
    """A generation that no send shows and no vote promises: other arguments never go under a known key."""
    votes = Vote.objects.filter(attempt__operation_id=operation_id).aggregate(newest=Max("generation"))
    return max(newest_generation(operation_id), int(votes["newest"] or 0)) + 1


def standing_votes() -> QuerySet[Vote]:
    """Votes that may still lead to a send: in a round under way, or in an approval that waits to be used."""
    waiting = Q(approval__used_at=None, approval__voided_at=None)
    return Vote.objects.filter(Q(approval=None) | waiting, voided_at=None)


def open_votes(attempt: Attempt, now: datetime) -> list[Vote]:
    """The votes of the round under way that still stand, oldest first."""
    votes = attempt.votes.filter(approval=None, voided_at=None, expires_at__gt=now).select_related("approver")
    in_force = rule_in_force(attempt.tenant_id, attempt.tool)
    return [vote for vote in votes.order_by("at") if _still_means(vote, attempt, in_force)]


def approval_facts(approval: Approval, *, sender: Agent, now: datetime) -> ApprovalFacts:
    """What authority asks of an approval: every vote recomputed against what holds now. Nobody approves what
    an agent of their own is to send, whichever agent asked first."""
    attempt = approval.attempt
    in_force = rule_in_force(attempt.tenant_id, attempt.tool)
    votes = list(approval.votes.all())
    enough = in_force.rule is not None and len(votes) >= in_force.rule.needed_approvals
    return ApprovalFacts(
        used=approval.used_at is not None,
        expires_at=approval.expires_at,
        digest_equal=enough and all(_still_means(vote, attempt, in_force) for vote in votes),
        approvers_permitted=all(
            vote.approver_id != sender.owner_id
            and may_approve(attempt, vote.approver_id, in_force.rule, now=now)
            for vote in votes
        ),
    )


def may_approve(attempt: Attempt, user_id: int, rule: Rule | None, *, now: datetime) -> bool:
    """Whether this person may approve this attempt at `now`: by right, and not in conflict."""
    return has_right_to_approve(attempt, user_id, rule) and not conflicts_of(attempt, user_id, now=now)


def may_decide(user_id: int, tenant_id: int) -> bool:
    """Whether this person may decide the work of this tenant now."""
    return _approvers.may_decide(user_id=user_id, tenant_id=tenant_id)


def has_right_to_approve(attempt: Attempt, user_id: int, rule: Rule | None) -> bool:
    """Whether this person holds the right, conflicts aside."""
    return rule is not None and _approvers.may_approve(
        user_id=user_id, tenant_id=attempt.tenant_id, tool=attempt.tool, effect=rule.effect
    )


def duties_in(attempt: Attempt, *, now: datetime) -> tuple[tuple[int | None, Duty], ...]:
    """Who has which part in this attempt (None: nobody has) at `now`, by user id."""
    changes = rule_changes((attempt.tenant_id, attempt.tool))
    return (
        (attempt.agent.owner_id, Duty.OWNS_AGENT),
        (attempt.requested_by_id, Duty.ASKED),
        (attempt.arguments_by_id, Duty.CORRECTED),
        (changes[-1].by_id if changes else None, Duty.CHANGED_RULE),
        *(_edited_lately(attempt, now) if is_dangerous(attempt) else ()),
    )


def conflicts_of(attempt: Attempt, user_id: int, *, now: datetime) -> tuple[Duty, ...]:
    """Why separation of duties keeps this person from approving; admins and superusers are not exempt."""
    return tuple(duty for person, duty in duties_in(attempt, now=now) if person == user_id)


def is_dangerous(attempt: Attempt) -> bool:
    """Is its effect a payment, deletion or deployment, by its own rule or by the one in force?"""
    in_force = rule_in_force(attempt.tenant_id, attempt.tool).rule
    return bool({rule.effect for rule in (rule_of(attempt), in_force) if rule} & HIGH_RISK)


def _edited_lately(attempt: Attempt, now: datetime) -> tuple[tuple[int | None, Duty], ...]:
    """Who corrected any attempt of the operation, or published any change of the rule, within 24 h."""
    since = now - EDITED_LATELY
    corrected = Attempt.objects.filter(
        operation_id=attempt.operation_id, arguments_by__isnull=False, created_at__gt=since
    )
    changes = rule_changes((attempt.tenant_id, attempt.tool))
    return (
        *((by_id, Duty.CORRECTED_LATELY) for by_id in corrected.values_list("arguments_by_id", flat=True)),
        *((change.by_id, Duty.CHANGED_RULE_LATELY) for change in changes if change.at > since),
    )


def means_what_it_did(vote: Vote, attempt: Attempt) -> bool:
    """Rule and scopes aside, is what this vote was bound to still there as it was?"""
    return vote.digest == _digest_of(vote, attempt, vote.rule_hash, vote.scopes)


def _still_means(vote: Vote, attempt: Attempt, in_force: InForce) -> bool:
    """A rule that was changed and changed back is not the one a yes from before was given under."""
    if in_force.rule_hash is None or vote.policy_id < rule_since(attempt.tenant_id, attempt.tool):
        return False
    return vote.digest == _digest_of(vote, attempt, in_force.rule_hash, attempt.scopes)


def _digest_of(vote: Vote, attempt: Attempt, rule_hash: str, scopes: Sequence[str]) -> str:
    """The digest a vote has, made from the attempt as it is and from the vote's own choices."""
    return vote_digest(
        tenant=str(attempt.tenant_id),
        operation=attempt.operation_id,
        attempt=attempt.pk,
        tool=attempt.tool,
        args_hash=attempt.args_hash,
        rule_hash=rule_hash,
        scopes=scopes,
        generation=vote.generation,
        approver=str(vote.approver_id),
        meaning=vote.meaning,
        expires_at=vote.expires_at,
    )


def _meaning(attempt: Attempt, sentence: str, window: KeyWindow, *, new_provider_key: bool) -> str:
    if not attempt.was_sent:
        key = "its first"
    elif new_provider_key:
        key = "a new key: the provider cannot tell it from the earlier send"
    else:
        key = f"the same key as before: {_protection(window)}"
    return f"{sentence}. Sends one provider call of {attempt.tool} with {key}."


def _protection(window: KeyWindow) -> str:
    """What keeps a repeated send from being a second effect: the words change once, when it closes."""
    if window.ends_at is None:
        return "nothing prevents a second effect"
    when = f"{window.ends_at:%Y-%m-%d %H:%M:%S} UTC"
    if window.protects:
        return f"the provider knows it until {when}, and nothing prevents a second effect after that"
    return f"the provider forgot it at {when}, and nothing prevents a second effect"
