"""How far a vote is, who may still add to it, and what one's own yes would be bound to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from ledger.approvals import Binding, is_dangerous
from ledger.models import Approval, Attempt, Decision, PolicySnapshot, User, Vote
from ledger.policies import current_snapshots, policy_of
from ledger.rules.authority import ApprovalFacts, Reason
from ledger.rules.states import OPEN_QUESTION, State
from review.people import People
from review.queries.marked import marked_text
from review.queries.page import ApprovalView, Ballot, Votes, VoteView
from review.queries.values import VotesSoFar
from review.queries.words import plain

_OF_APPROVAL = frozenset(
    {Reason.APPROVAL_USED, Reason.APPROVAL_EXPIRED, Reason.APPROVAL_STALE, Reason.APPROVER_REFUSED}
)


def votes_of(
    attempt: Attempt,
    every: Sequence[Vote],
    binding: Binding | None,
    people: People,
    barred: Mapping[int, str],
    now: datetime,
) -> Votes:
    """`barred`: user id → why separate duties keep this person from approving."""
    counted = frozenset(vote.pk for vote in every if counts(vote, binding, now))
    voted = {vote.approver_id for vote in every if vote.pk in counted}
    approvals = _approvals(every, now)
    waiting = next((approval for approval in approvals if approval.status in ("waiting", "expired")), None)
    return Votes(
        needed=binding.needed if binding else 0,
        open=tuple(_vote_view(attempt, vote, "") for vote in every if vote.pk in counted),
        voided=tuple(
            _vote_view(attempt, vote, _why_void(vote, now))
            for vote in every
            if vote.approval is None and vote.pk not in counted
        ),
        may_still_vote=_may_still_vote(attempt, binding, people, {*barred, *voted}),
        approvals=approvals,
        waiting=waiting,
    )


def with_authority(votes: Votes, refused: Sequence[Reason]) -> Votes:
    """`refused`: what stands against the send the waiting approval was given for."""
    lapsed = tuple(reason for reason in refused if reason in _OF_APPROVAL)
    against = tuple(reason for reason in refused if reason not in _OF_APPROVAL)
    return replace(votes, lapsed=lapsed, against=against)


def facts_of(
    approval: Approval,
    every: Sequence[Vote],
    binding: Binding | None,
    people: People,
    barred: Mapping[int, str],
) -> ApprovalFacts:
    """What `ledger.approvals.approval_facts` answers of an unused approval, from what is read already."""
    own = [vote for vote in every if vote.approval_id == approval.pk]
    return ApprovalFacts(
        used=False,
        expires_at=approval.expires_at,
        digest_equal=binding is not None
        and len(own) >= binding.needed
        and all(still_means(vote, binding) for vote in own),
        approvers_permitted=binding is not None
        and {vote.approver_id for vote in own} <= _able(binding, people) - barred.keys(),
    )


def votes_so_far(attempts: Sequence[Attempt], now: datetime) -> Mapping[str, VotesSoFar]:
    """The rounds under way, by attempt id, as far as votes still count; two queries."""
    cast = Vote.objects.filter(
        attempt__in=attempts, approval__isnull=True, voided_at__isnull=True, expires_at__gt=now
    )
    by_attempt: dict[str, list[Vote]] = defaultdict(list)
    for vote in cast:
        by_attempt[vote.attempt_id].append(vote)
    under_way = [attempt for attempt in attempts if attempt.pk in by_attempt]
    in_force = current_snapshots(attempt.tenant_id for attempt in under_way)
    found = {}
    for attempt in under_way:
        binding = _bare_binding(attempt, in_force.get(attempt.tenant_id))
        given = sum(1 for vote in by_attempt[attempt.pk] if counts(vote, binding, now))
        if binding is not None and given:
            found[attempt.pk] = VotesSoFar(given, binding.needed)
    return found


def _bare_binding(attempt: Attempt, policy: PolicySnapshot | None) -> Binding | None:
    """Enough of a binding to recompute digests: meaning and generation are each vote's own."""
    rule = policy_of(policy).rule_for(attempt.tool) if policy else None
    if policy is None or rule is None:
        return None
    return Binding(attempt=attempt, policy=policy, rule=rule, sentence="", meaning="", generation=0)


def ballot_of(binding: Binding | None, now: datetime) -> Ballot | None:
    """What a yes given now means; None where the policy refuses the tool."""
    if binding is None:
        return None
    return Ballot(
        digest=binding.shown,
        meaning=binding.meaning,
        meaning_segments=marked_text(binding.meaning),
        expires_at=now + timedelta(seconds=binding.vote_life_s),
        dangerous=is_dangerous(binding.attempt),
    )


def cast_votes(decisions: Sequence[Decision]) -> list[Vote]:
    """Those of an attempt's decisions that are votes, oldest first; they are read with the decisions."""
    return [decision.vote for decision in reversed(decisions) if hasattr(decision, "vote")]


def waiting_approval(votes: Sequence[Vote]) -> Approval | None:
    """The approval that waits to be used, expired or not."""
    made = (vote.approval for vote in votes if vote.approval is not None)
    return next((one for one in made if one.used_at is None and one.voided_at is None), None)


def counts(vote: Vote, binding: Binding | None, now: datetime) -> bool:
    """Does this vote of the round under way stand? Its digest is made again from what holds now."""
    if binding is None or vote.approval is not None or vote.voided_at is not None or vote.expires_at <= now:
        return False
    return still_means(vote, binding)


def still_means(vote: Vote, binding: Binding) -> bool:
    """Is this vote's digest the one that what holds now would give it, under a rule that never changed?"""
    if vote.policy_id < binding.since:
        return False
    as_given = replace(binding, meaning=vote.meaning, generation=vote.generation)
    return as_given.digest(approver_id=vote.approver_id, expires_at=vote.expires_at) == vote.digest


def _able(binding: Binding, people: People) -> set[int]:
    return {person.pk for person in people.approvers(binding.attempt.tool, binding.rule.effect)}


def _may_still_vote(
    attempt: Attempt, binding: Binding | None, people: People, left_out: set[int]
) -> tuple[str, ...]:
    approvable = attempt.state in OPEN_QUESTION or attempt.state == State.INTENT_RECORDED
    if binding is None or not approvable:
        return ()
    able: tuple[User, ...] = people.approvers(attempt.tool, binding.rule.effect)
    return tuple(person.get_username() for person in able if person.pk not in left_out)


def _vote_view(attempt: Attempt, vote: Vote, void_cause: str) -> VoteView:
    return VoteView(
        by=vote.approver.get_username(),
        at=vote.at,
        expires_at=vote.expires_at,
        why=vote.decision.why,
        void_cause=void_cause,
        new_key=vote.generation != attempt.generation,
    )


def _why_void(vote: Vote, now: datetime) -> str:
    if vote.voided_at is not None:
        return plain(vote.void_cause)
    return "expired" if vote.expires_at <= now else "what it was given for has changed"


def _approvals(votes: Sequence[Vote], now: datetime) -> tuple[ApprovalView, ...]:
    """Newest first, each with who made it."""
    approvals = {vote.approval.pk: vote.approval for vote in votes if vote.approval is not None}
    newest_first = sorted(approvals.values(), key=lambda approval: approval.approved_at, reverse=True)
    return tuple(_approval_view(approval, votes, now) for approval in newest_first)


def with_earlier(votes: Votes, cast: Sequence[Vote], attempts: Sequence[Attempt], now: datetime) -> Votes:
    """Adds the approvals that `cast`, the votes for other attempts of the operation, made."""
    numbers = {attempt.pk: attempt.number for attempt in attempts}
    of_attempt = {vote.approval_id: vote.attempt_id for vote in cast}
    earlier = _approvals(cast, now)
    numbered = (replace(one, attempt_number=numbers[of_attempt[one.approval_id]]) for one in earlier)
    return replace(votes, earlier=tuple(numbered))


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
