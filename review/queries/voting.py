"""How far a vote is, who may still add to it, and what one's own yes would be bound to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from ledger.approvals import Binding
from ledger.models import Approval, Attempt, Decision, User, Vote
from review.people import People
from review.queries.marked import marked_text
from review.queries.page import ApprovalView, Ballot, Votes, VoteView
from review.queries.words import plain


def votes_of(
    attempt: Attempt,
    every: Sequence[Vote],
    binding: Binding | None,
    people: People,
    barred: Mapping[int, str],
    now: datetime,
) -> Votes:
    """`barred`: user id → why separate duties keep this person from approving."""
    counted = frozenset(vote.pk for vote in every if _counts(vote, binding, now))
    voted = {vote.approver_id for vote in every if vote.pk in counted}
    approvals = _approvals(every, now)
    return Votes(
        needed=binding.needed if binding else 0,
        open=tuple(_vote_view(vote, "") for vote in every if vote.pk in counted),
        voided=tuple(
            _vote_view(vote, _why_void(vote, now))
            for vote in every
            if vote.approval is None and vote.pk not in counted
        ),
        may_still_vote=_may_still_vote(attempt, binding, people, {*barred, *voted}),
        approvals=approvals,
        waiting=next((approval for approval in approvals if approval.status == "waiting"), None),
    )


def ballot_of(binding: Binding | None, now: datetime) -> Ballot | None:
    """What a yes given now means; None where the policy refuses the tool."""
    if binding is None:
        return None
    return Ballot(
        digest=binding.shown,
        meaning=binding.meaning,
        meaning_segments=marked_text(binding.meaning),
        expires_at=now + timedelta(seconds=binding.vote_life_s),
    )


def cast_votes(decisions: Sequence[Decision]) -> list[Vote]:
    """Those of an attempt's decisions that are votes, oldest first; they are read with the decisions."""
    return [decision.vote for decision in reversed(decisions) if hasattr(decision, "vote")]


def waiting_approval(votes: Sequence[Vote]) -> Approval | None:
    """The approval that waits to be used, expired or not."""
    made = (vote.approval for vote in votes if vote.approval is not None)
    return next((one for one in made if one.used_at is None and one.voided_at is None), None)


def _counts(vote: Vote, binding: Binding | None, now: datetime) -> bool:
    """Does this vote of the round under way stand? Its digest is made again from what holds now."""
    if binding is None or vote.approval is not None or vote.voided_at is not None or vote.expires_at <= now:
        return False
    as_given = replace(binding, meaning=vote.meaning, generation=vote.generation)
    return as_given.digest(approver_id=vote.approver_id, expires_at=vote.expires_at) == vote.digest


def _may_still_vote(
    attempt: Attempt, binding: Binding | None, people: People, left_out: set[int]
) -> tuple[str, ...]:
    if binding is None:
        return ()
    able: tuple[User, ...] = people.approvers(attempt.tool, binding.rule.effect)
    return tuple(person.get_username() for person in able if person.pk not in left_out)


def _vote_view(vote: Vote, void_cause: str) -> VoteView:
    return VoteView(vote.approver.get_username(), vote.at, vote.expires_at, vote.decision.why, void_cause)


def _why_void(vote: Vote, now: datetime) -> str:
    if vote.voided_at is not None:
        return plain(vote.void_cause)
    return "expired" if vote.expires_at <= now else "what it was given for has changed"


def _approvals(votes: Sequence[Vote], now: datetime) -> tuple[ApprovalView, ...]:
    """Newest first, each with who made it."""
    approvals = {vote.approval.pk: vote.approval for vote in votes if vote.approval is not None}
    newest_first = sorted(approvals.values(), key=lambda approval: approval.approved_at, reverse=True)
    return tuple(_approval_view(approval, votes, now) for approval in newest_first)


def _approval_view(approval: Approval, votes: Sequence[Vote], now: datetime) -> ApprovalView:
    return ApprovalView(
        approval_id=approval.pk,
        approved_at=approval.approved_at,
        expires_at=approval.expires_at,
        status=_status(approval, now),
        void_cause=approval.void_cause,
        void_words=plain(approval.void_cause),
        by=tuple(vote.approver.get_username() for vote in votes if vote.approval_id == approval.pk),
    )


def _status(approval: Approval, now: datetime) -> str:
    if approval.used_at is not None:
        return "used"
    if approval.voided_at is not None:
        return "void"
    return "waiting" if now < approval.expires_at else "expired"
