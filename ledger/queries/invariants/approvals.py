"""Approvals: each is the yes of enough distinct people to exactly what was sent, at most once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from django.db.models import QuerySet

from ledger.models import PolicySnapshot, Vote
from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.rules.digest import vote_digest
from ledger.rules.policy import Policy, Rule, parse_policy
from ledger.rules.states import State
from ledger.rules.vocabulary import EventKind

CHUNK = 1_000


def votes_recompute(scope: Scope) -> Iterator[Broken]:
    """A vote is bound to one digest, under the rule its policy holds for the tool."""
    rules = _Rules()
    for vote in _votes(scope).iterator(chunk_size=CHUNK):
        rule = rules.of(vote)
        if vote.digest != _digest(vote):
            yield Broken(vote.tenant_id, vote.decision_id, "its digest does not cover what it is a yes to")
        elif rule is None or rule.rule_hash != vote.rule_hash:
            yield Broken(vote.tenant_id, vote.decision_id, "its policy holds another rule for the tool")


def approvals_have_their_quorum(scope: Scope) -> Iterator[Broken]:
    rules = _Rules()
    votes = _votes(scope).filter(approval__isnull=False).order_by("approval_id", "pk")
    for approval_id, given in groupby(votes.iterator(chunk_size=CHUNK), key=lambda vote: vote.approval_id):
        round_of_votes = list(given)
        rule = rules.of(round_of_votes[-1])
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
        FROM ledger_approval approval LEFT JOIN ledger_vote vote ON vote.approval_id = approval.id
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
        FROM ledger_approval approval LEFT JOIN ledger_approvaluse used ON used.approval_id = approval.id
        GROUP BY approval.tenant_id, approval.id, approval.used_at, approval.voided_at
        HAVING count(used.id) <> (CASE WHEN approval.used_at IS NULL THEN 0 ELSE 1 END)
            OR (count(used.id) > 0 AND approval.voided_at IS NOT NULL)
    """)


def approvals_are_used_in_their_time(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT used.tenant_id, approval.id, 'was used before it stood or after it expired'
        FROM ledger_approvaluse used JOIN ledger_approval approval ON approval.id = used.approval_id
        WHERE used.at < approval.approved_at OR used.at >= approval.expires_at
    """)


def uses_equal_what_was_sent(scope: Scope) -> Iterable[Broken]:
    """A send used up an approval of its own operation, for exactly its arguments and rule.

    A held attempt keeps the rule it was recorded under, while its votes were given under the current one.
    """
    return scope.select("""
        SELECT used.tenant_id, attempt.id, 'was sent with other arguments or under another rule than approved'
        FROM ledger_approvaluse used
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
        FROM ledger_attempt attempt
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


def what_was_held_waits_with_its_approval(scope: Scope) -> Iterable[Broken]:
    """Only an approval brings a held attempt to INTENT_RECORDED; without one it belongs to the desk."""
    sql = """
        SELECT attempt.tenant_id, attempt.id, 'was held and waits for its agent without an approval'
        FROM ledger_attempt attempt
        WHERE attempt.state = %(recorded)s AND attempt.held_at IS NOT NULL
          AND NOT EXISTS (
              SELECT 1 FROM ledger_approval approval
              WHERE approval.attempt_id = attempt.id AND used_at IS NULL AND voided_at IS NULL)
    """
    return scope.select(sql, recorded=str(State.INTENT_RECORDED))


def approvers_were_not_in_conflict(scope: Scope) -> Iterable[Broken]:
    """Nobody approves what they own, asked for, or corrected; admins and superusers are not exempt."""
    return scope.select("""
        SELECT vote.tenant_id, vote.decision_id,
               CASE vote.approver_id WHEN attempt.requested_by_id THEN 'approved what they asked for'
                    WHEN attempt.arguments_by_id THEN 'approved arguments they corrected'
                    ELSE 'approved what their own agent asked for' END
        FROM ledger_vote vote
        JOIN ledger_attempt attempt ON attempt.id = vote.attempt_id
        JOIN ledger_agent agent ON agent.id = attempt.agent_id
        WHERE vote.approver_id IN (agent.owner_id, attempt.requested_by_id, attempt.arguments_by_id)
    """)


def approvers_had_not_changed_the_rule(scope: Scope) -> Iterator[Broken]:
    rules = _Rules()
    for vote in _votes(scope).iterator(chunk_size=CHUNK):
        if rules.editor(vote) == vote.approver_id:
            yield Broken(vote.tenant_id, vote.decision_id, "approved under a rule they had changed last")


def votes_are_decisions_of_their_approver(scope: Scope) -> Iterable[Broken]:
    return scope.select("""
        SELECT vote.tenant_id, vote.decision_id, 'its decision is of another person, attempt or kind'
        FROM ledger_vote vote LEFT JOIN ledger_decision decision ON decision.id = vote.decision_id
        WHERE decision.id IS NULL OR decision.kind <> 'approve' OR decision.by_id <> vote.approver_id
           OR decision.attempt_id <> vote.attempt_id
    """)


class _Rules:
    """The rule a vote was given under, and who had last changed it; each policy is parsed once."""

    def __init__(self) -> None:
        self._snapshots = {snapshot.pk: snapshot for snapshot in PolicySnapshot.objects.order_by("version")}
        self._policies: dict[int, Policy] = {}
        self._editors: dict[tuple[int, str], int | None] = {}

    def of(self, vote: Vote) -> Rule | None:
        return self._rule(self._snapshots[vote.policy_id], vote.attempt.tool)

    def editor(self, vote: Vote) -> int | None:
        key = (vote.policy_id, vote.attempt.tool)
        if key not in self._editors:
            self._editors[key] = self._last_change(self._snapshots[vote.policy_id], vote.attempt.tool)
        return self._editors[key]

    def _last_change(self, until: PolicySnapshot, tool: str) -> int | None:
        editor, rule_hash = None, None
        for snapshot in self._snapshots.values():
            if snapshot.tenant_id == until.tenant_id and snapshot.version <= until.version:
                rule = self._rule(snapshot, tool)
                found = rule.rule_hash if rule else None
                if found != rule_hash:
                    rule_hash, editor = found, snapshot.published_by_id
        return editor

    def _rule(self, snapshot: PolicySnapshot, tool: str) -> Rule | None:
        if snapshot.pk not in self._policies:
            self._policies[snapshot.pk] = parse_policy(snapshot.document)
        return self._policies[snapshot.pk].rule_for(tool)


def _votes(scope: Scope) -> QuerySet[Vote]:
    votes = Vote.objects.select_related("attempt").order_by("pk")
    return votes if scope.tenant_id is None else votes.filter(tenant_id=scope.tenant_id)


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
    what_was_held_waits_with_its_approval,
    approvers_were_not_in_conflict,
    approvers_had_not_changed_the_rule,
    votes_are_decisions_of_their_approver,
)
