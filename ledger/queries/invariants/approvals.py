"""Approvals: each is the yes of enough distinct people to exactly what was sent, at most once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import groupby

from django.db.models import Q, QuerySet

from ledger.models import Attempt, Vote
from ledger.queries.invariants.published import PublishedRules
from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.rules.digest import vote_digest
from ledger.rules.policy import Rule
from ledger.rules.states import State
from ledger.rules.vocabulary import HIGH_RISK, AccessChangeKind, EventKind
from ledger.rules.voiding import EDITED_LATELY, VoidCause

CHUNK = 1_000
PUBLISHING = timedelta(minutes=1)
"""A policy is in force from its commit, which may be this much later than the time it carries."""


def votes_recompute(scope: Scope) -> Iterator[Broken]:
    """A vote is bound to one digest, under the rule its policy holds for the tool."""
    rules = PublishedRules()
    for vote in _votes(scope).iterator(chunk_size=CHUNK):
        rule = _rule(rules, vote)
        if vote.digest != _digest(vote):
            yield Broken(vote.tenant_id, vote.decision_id, "its digest does not cover what it is a yes to")
        elif rule is None or rule.rule_hash != vote.rule_hash:
            yield Broken(vote.tenant_id, vote.decision_id, "its policy holds another rule for the tool")


def approvals_have_their_quorum(scope: Scope) -> Iterator[Broken]:
    rules = PublishedRules()
    votes = _votes(scope).filter(approval__isnull=False).order_by("approval_id", "pk")
    for approval_id, given in groupby(votes.iterator(chunk_size=CHUNK), key=lambda vote: vote.approval_id):
        round_of_votes = list(given)
        rule = _rule(rules, round_of_votes[-1])
        people = len({vote.approver_id for vote in round_of_votes})
        if rule is not None and people < rule.needed_approvals:
            detail = f"{people} of {rule.needed_approvals} people voted for it"
            yield Broken(round_of_votes[0].tenant_id, approval_id, detail)


def approvals_have_votes_in_their_time(scope: Scope) -> Iterable[Broken]:
    """An approval stands on votes for its attempt, each given before it and outlasting it."""
    return scope.select("""
        SELECT approval.tenant_id, approval.id,
               CASE WHEN count(vote.id) = 0 THEN 'has no vote'
                    ELSE 'its votes were for another attempt, came later, or ended earlier' END
        FROM scoped_approval approval LEFT JOIN ledger_vote vote ON vote.approval_id = approval.id
        GROUP BY approval.tenant_id, approval.id, approval.attempt_id, approved_at, approval.expires_at
        HAVING count(vote.id) = 0 OR bool_or(vote.attempt_id <> approval.attempt_id)
            OR max(vote.at) > approval.approved_at OR min(vote.expires_at) < approval.expires_at
    """)


def approvals_are_used_at_most_once(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT approval.tenant_id, approval.id,
               CASE WHEN count(used.id) = 1 AND approval.voided_at IS NOT NULL THEN 'was used although voided'
                    ELSE format('used %%s times, used_at is %%s', count(used.id),
                                coalesce(approval.used_at::text, 'empty')) END
        FROM scoped_approval approval LEFT JOIN ledger_approvaluse used ON used.approval_id = approval.id
        GROUP BY approval.tenant_id, approval.id, approval.used_at, approval.voided_at
        HAVING count(used.id) <> (CASE WHEN approval.used_at IS NULL THEN 0 ELSE 1 END)
            OR (count(used.id) > 0 AND approval.voided_at IS NOT NULL)
    """)


def approvals_are_used_in_their_time(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT used.tenant_id, approval.id, 'was used before it stood or after it expired'
        FROM scoped_approvaluse used JOIN ledger_approval approval ON approval.id = used.approval_id
        WHERE used.at < approval.approved_at OR used.at >= approval.expires_at
    """)


def uses_equal_what_was_sent(scope: Scope) -> Iterable[Broken]:
    """A send used up an approval of its own operation, for exactly its arguments and rule.

    A held attempt keeps the rule it was recorded under, while its votes were given under the current one.
    """
    return scope.select("""
        SELECT used.tenant_id, attempt.id, 'was sent with other arguments or under another rule than approved'
        FROM scoped_approvaluse used
        JOIN ledger_attempt attempt ON attempt.id = used.attempt_id
        JOIN ledger_approval approval ON approval.id = used.approval_id
        JOIN ledger_attempt approved ON approved.id = approval.attempt_id
        WHERE approval.operation_id <> attempt.operation_id
           OR used.args_hash <> attempt.args_hash OR used.args_hash <> approved.args_hash
           OR attempt.dispatched_at IS NULL
           OR (attempt.id <> approved.id AND used.rule_hash <> attempt.rule_hash)
           OR EXISTS (
               SELECT 1 FROM ledger_vote vote
               WHERE vote.approval_id = approval.id AND vote.rule_hash <> used.rule_hash)
    """)


def sends_with_approval_have_their_use(scope: Scope) -> Iterable[Broken]:
    """An attempt that was ever held, and a new send out of doubt, go with an approval and no other way."""
    sql = """
        SELECT attempt.tenant_id, attempt.id, 'was sent without the approval it needed'
        FROM scoped_attempt attempt
        WHERE attempt.dispatched_at IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM ledger_approvaluse used WHERE used.attempt_id = attempt.id)
          AND ((attempt.held_at IS NOT NULL AND attempt.held_at <= attempt.dispatched_at) OR EXISTS (
              SELECT 1 FROM ledger_event replaced
              WHERE replaced.attempt_id = attempt.descends_from_id AND replaced.kind = %(superseded)s
                AND replaced.at = attempt.dispatched_at
                AND replaced.body::jsonb ->> 'from' = ANY(%(doubtful)s)))
    """
    doubtful = [str(State.UNKNOWN), str(State.MANUAL_REVIEW)]
    return scope.select(sql, superseded=str(EventKind.SUPERSEDED), doubtful=doubtful)


def first_sends_seen_by_people_use_an_approval(scope: Scope) -> Iterator[Broken]:
    """Under `review: always` nothing is sent for the first time without one."""
    rules = PublishedRules()
    sent = Attempt.objects.filter(dispatched_at__isnull=False)
    first = sent.filter(Q(descends_from=None) | Q(descends_from__dispatched_at=None))
    unapproved = scope.rows(first.filter(approval_use=None)).only("tenant_id", "policy_id", "tool")
    for attempt in unapproved.order_by("pk").iterator(chunk_size=CHUNK):
        rule = rules.rule(attempt.tenant_id, attempt.policy_id, attempt.tool)
        if rule is not None and rule.review == "always":
            yield Broken(attempt.tenant_id, attempt.pk, "was sent, and its rule wants a person before that")


def what_was_held_waits_with_its_approval(scope: Scope) -> Iterable[Broken]:
    """Only an approval brings a held attempt to INTENT_RECORDED; without one it belongs to the desk."""
    sql = """
        SELECT attempt.tenant_id, attempt.id, 'was held and waits for its agent without an approval'
        FROM scoped_attempt attempt
        WHERE attempt.state = %(recorded)s AND attempt.held_at IS NOT NULL
          AND NOT EXISTS (
              SELECT 1 FROM ledger_approval approval
              WHERE approval.attempt_id = attempt.id AND used_at IS NULL AND voided_at IS NULL)
    """
    return scope.select(sql, recorded=str(State.INTENT_RECORDED))


def approvers_were_not_in_conflict(scope: Scope) -> Iterable[Broken]:
    """Nobody approves what they own, asked for, or corrected, when they vote or when it is used; admins and
    superusers are not exempt. What was taken back because they had come into conflict since was right when it
    was given, and an agent may be given to whoever approved for it before."""
    return scope.select(
        """
        SELECT DISTINCT vote.tenant_id, vote.decision_id,
               CASE vote.approver_id WHEN attempt.requested_by_id THEN 'approved what they asked for'
                    WHEN attempt.arguments_by_id THEN 'approved arguments they corrected'
                    ELSE 'approved what their own agent asked for' END
        FROM scoped_vote vote
        JOIN ledger_attempt attempt ON attempt.id = vote.attempt_id
        JOIN ledger_agent agent ON agent.id = attempt.agent_id
        LEFT JOIN ledger_approval approval ON approval.id = vote.approval_id
        LEFT JOIN ledger_approvaluse used ON used.approval_id = approval.id
        CROSS JOIN LATERAL (VALUES (vote.at), (coalesce(used.at, vote.at))) moment (at)
        CROSS JOIN LATERAL (SELECT coalesce(
            (SELECT given.person_id FROM ledger_accesschange given
             WHERE given.agent_id = agent.id AND given.kind = %(given)s AND given.at <= moment.at
             ORDER BY given.at DESC, given.id DESC LIMIT 1),
            (SELECT before.id FROM ledger_accesschange given
             JOIN ledger_user before ON before.username = given.data ->> 'before'
             WHERE given.agent_id = agent.id AND given.kind = %(given)s AND given.at > moment.at
             ORDER BY given.at, given.id LIMIT 1),
            agent.owner_id) AS id) owner
        WHERE vote.approver_id IN (owner.id, attempt.requested_by_id, attempt.arguments_by_id)
          AND coalesce(nullif(vote.void_cause, ''), approval.void_cause, '') <> %(taken_back)s
    """,
        taken_back=str(VoidCause.CONFLICT),
        given=str(AccessChangeKind.AGENT_GIVEN),
    )


def approvers_had_not_changed_the_rule(scope: Scope) -> Iterator[Broken]:
    """Neither when they voted nor when it was sent."""
    rules = PublishedRules()
    for vote in _votes(scope).select_related("approval__use").iterator(chunk_size=CHUNK):
        editors = {rules.editor(vote.tenant_id, policy, vote.attempt.tool) for policy in _asked(rules, vote)}
        if vote.approver_id in editors:
            yield Broken(vote.tenant_id, vote.decision_id, "approved under a rule they had changed last")


def approvers_of_danger_had_not_edited_lately(scope: Scope) -> Iterator[Broken]:
    """Of a dangerous effect nobody votes who edited arguments of the operation, or the rule, within 24 h."""
    rules = PublishedRules()
    for vote in _votes(scope).iterator(chunk_size=CHUNK):
        rule = _rule(rules, vote)
        if rule is None or rule.effect not in HIGH_RISK:
            continue
        since, tool = vote.at - EDITED_LATELY, vote.attempt.tool
        corrected = Attempt.objects.filter(
            operation_id=vote.attempt.operation_id,
            arguments_by_id=vote.approver_id,
            created_at__gt=since,
            created_at__lte=vote.at,
        )
        edited = vote.approver_id in rules.editors_since(vote.tenant_id, tool, since, vote.at - PUBLISHING)
        if edited or corrected.exists():
            yield Broken(
                vote.tenant_id, vote.decision_id, "approved within 24 h of editing arguments or rule"
            )


def _asked(rules: PublishedRules, vote: Vote) -> set[int]:
    """The policies in force when this vote was judged."""
    used = getattr(vote.approval, "use", None)
    if used is None:
        return {vote.policy_id}
    at_use = rules.in_force(vote.tenant_id, used.at - PUBLISHING, not_before=vote.policy_id)
    return {vote.policy_id, at_use}


def votes_are_decisions_of_their_approver(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT vote.tenant_id, vote.decision_id, 'its decision is of another person, attempt or kind'
        FROM scoped_vote vote LEFT JOIN ledger_decision decision ON decision.id = vote.decision_id
        WHERE decision.id IS NULL OR decision.kind <> 'approve' OR decision.by_id <> vote.approver_id
           OR decision.attempt_id <> vote.attempt_id
    """)


def _votes(scope: Scope) -> QuerySet[Vote]:
    return scope.rows(Vote.objects.select_related("attempt").order_by("pk"))


def _rule(rules: PublishedRules, vote: Vote) -> Rule | None:
    return rules.rule(vote.tenant_id, vote.policy_id, vote.attempt.tool)


def _digest(vote: Vote) -> str:
    attempt = vote.attempt
    return vote_digest(
        tenant=str(vote.tenant_id),
        operation=attempt.operation_id,
        attempt=attempt.pk,
        tool=attempt.tool,
        args_hash=attempt.args_hash,
        rule_hash=vote.rule_hash,
        scopes=vote.scopes,
        generation=vote.generation,
        approver=str(vote.approver_id),
        meaning=vote.meaning,
        expires_at=vote.expires_at,
    )


CHECKS: tuple[Check, ...] = (
    votes_recompute,
    approvals_have_their_quorum,
    approvals_have_votes_in_their_time,
    approvals_are_used_at_most_once,
    approvals_are_used_in_their_time,
    uses_equal_what_was_sent,
    sends_with_approval_have_their_use,
    first_sends_seen_by_people_use_an_approval,
    what_was_held_waits_with_its_approval,
    approvers_were_not_in_conflict,
    approvers_had_not_changed_the_rule,
    approvers_of_danger_had_not_edited_lately,
    votes_are_decisions_of_their_approver,
)
