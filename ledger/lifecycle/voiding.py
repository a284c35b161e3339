"""Take votes and approvals back whose ground has changed since they were given, and say why."""

from __future__ import annotations

from datetime import UTC, datetime

from ledger import approvals
from ledger.authority import keys_of, usable_keys
from ledger.events import SYSTEM
from ledger.lifecycle.case import Case, unlocked_case
from ledger.lifecycle.locking import locked_attempt
from ledger.lifecycle.moves import void_approval
from ledger.models import Attempt, Vote
from ledger.policies import rule_in_force, rule_since
from ledger.rules.authority import ApprovalFacts
from ledger.rules.vocabulary import EventKind, ReviewReason
from ledger.rules.voiding import OF_APPROVER, STALE, VoidCause, VoteNow, why_void

_REASONS = {VoidCause.RULE: ReviewReason.POLICY_CHANGED}


def end_changed_votes(*, attempt_id: str) -> bool:
    """Void what no longer stands of an attempt's votes and approval. Whoever restores what they stood on asks
    for new ones: a yes that was void once never comes back."""
    with locked_attempt(attempt_id, tenant_id=None, actor=SYSTEM) as (case, attempt):
        return void_what_changed(case, attempt)


def has_changed_votes(attempt: Attempt) -> bool:
    """Would `end_changed_votes` void anything? Read without a lock, so that what stands is not locked."""
    case = unlocked_case(attempt.operation)
    return any(_cause(case, attempt, vote) for vote in _standing(attempt))


def void_what_changed(case: Case, attempt: Attempt) -> bool:
    """One vote of an approval that is void takes the approval with it; of a round under way only itself."""
    causes = {vote: cause for vote in _standing(attempt) if (cause := _cause(case, attempt, vote))}
    of_approval = [cause for vote, cause in causes.items() if vote.approval_id]
    if of_approval:
        reason = _REASONS.get(of_approval[0], ReviewReason.APPROVAL_REQUIRED)
        void_approval(case, attempt, of_approval[0], reason=reason)
    for vote, cause in causes.items():
        if not (vote.approval_id or of_approval):
            void_vote(case, attempt, vote, cause)
    return bool(causes)


def lapsed_approval(case: Case, attempt: Attempt) -> ApprovalFacts | None:
    """The facts of this attempt's last approval, where a change since voided it and no later vote was given:
    its agent is told that, not to wait for a person who has long decided."""
    last = attempt.approvals.order_by("-approved_at", "-pk").first()
    if last is None or last.voided_at is None or last.void_cause not in STALE | OF_APPROVER:
        return None
    if attempt.pk in case.approvals or attempt.votes.filter(at__gt=last.voided_at).exists():
        return None
    return ApprovalFacts(
        used=False,
        expires_at=datetime.max.replace(tzinfo=UTC),
        digest_equal=last.void_cause not in STALE,
        approvers_permitted=last.void_cause not in OF_APPROVER,
    )


def _standing(attempt: Attempt) -> list[Vote]:
    """The votes of the round under way and of the approval that waits to be used, oldest first."""
    return list(approvals.standing_votes().filter(attempt=attempt).order_by("at", "pk"))


def _cause(case: Case, attempt: Attempt, vote: Vote) -> VoidCause | None:
    in_force = rule_in_force(attempt.tenant_id, attempt.tool)
    same_rule = in_force.rule_hash == vote.rule_hash
    return why_void(
        VoteNow(
            digest_equal=approvals.means_what_it_did(vote, attempt),
            rule_stands=same_rule and vote.policy_id >= rule_since(attempt.tenant_id, attempt.tool),
            tenant_active=attempt.agent.tenant.is_active,
            covered=_is_covered(case, attempt, vote),
            cancelled=case.operation.cancelled_at is not None,
            happened=case.confirmed is not None,
            permitted=approvals.has_right_to_approve(attempt, vote.approver_id, in_force.rule),
            in_conflict=bool(approvals.conflicts_of(attempt, vote.approver_id, now=case.now)),
        )
    )


def _is_covered(case: Case, attempt: Attempt, vote: Vote) -> bool:
    same = sorted(set(vote.scopes)) == sorted(set(attempt.scopes))
    return same and bool(usable_keys(attempt, keys_of(attempt.agent), case.now))


def void_vote(case: Case, attempt: Attempt, vote: Vote, cause: str) -> None:
    """One vote of a round under way counts no longer; history says why."""
    Vote.objects.filter(pk=vote.pk).update(voided_at=case.now, void_cause=cause)
    case.record(EventKind.VOTE_VOIDED, attempt, decision=vote.decision_id, cause=cause)
