"""Approve a new send: one person's vote, bound to one digest; enough of them are the only way from a person
to a send."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet

from ledger import approvals
from ledger.approvals import Binding, binding_of, conflicts_of, open_votes
from ledger.authority import key_window_of
from ledger.lifecycle.approvable import gives_way
from ledger.lifecycle.case import Case
from ledger.lifecycle.deciding import Desk, at_the_desk
from ledger.lifecycle.moves import drop_approval, move
from ledger.lifecycle.possible import check_possible
from ledger.lifecycle.twins import twins_of
from ledger.lifecycle.values import Decided, DecisionRefused
from ledger.lifecycle.voiding import void_vote, void_what_changed
from ledger.models import Approval, Attempt, User, Vote
from ledger.models.ids import approval_id
from ledger.policies import rule_of
from ledger.rules.budgets import How
from ledger.rules.key_window import KeyWindow
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind, EventKind


def approve(
    *, item_id: str, by: User, why: str, new_provider_key: bool = False, shown_digest: str | None = None
) -> Decided:
    """Vote for a new send of exactly this attempt. Enough distinct votes make an approval, which expires
    with its earliest vote; an approval given anew replaces one that waits. A round is for one provider key:
    a vote for another takes back those before it.

    Held: becomes INTENT_RECORDED. Sent: stays what it is until leave is asked for. `shown_digest`:
    `Binding.shown` of the page the person read; refused `changed-while-reading` where it no longer holds,
    `protection-over` where the provider has forgotten the key since.
    """
    with at_the_desk(item_id, by) as desk:
        case, attempt = desk.case, desk.attempt
        check_possible(desk, DecisionKind.APPROVE)
        void_what_changed(case, attempt)
        binding = _binding(desk, new_provider_key=new_provider_key, shown=shown_digest)
        decided = _vote(desk, binding, why)
        _end_votes_for_another_key(case, attempt, binding)
        _count_votes(case, attempt, binding)
        return decided


def _binding(desk: Desk, *, new_provider_key: bool, shown: str | None) -> Binding:
    attempt, by, now = desk.attempt, desk.by, desk.case.now
    window = key_window_of(attempt, rule_of(attempt), now)
    binding = binding_of(attempt, window, new_provider_key=new_provider_key)
    if binding is None:
        raise DecisionRefused("authority", "The policy refuses this tool.", ("policy-refused",))
    if shown is not None and shown not in (binding.shown, _shown_plainly(attempt, window)):
        raise _changed_while_reading(attempt, window, shown)
    conflicts = conflicts_of(attempt, by.pk, now=now)
    if conflicts:
        raise DecisionRefused("separation-of-duties", f"You may not approve: you {' and '.join(conflicts)}.")
    if not approvals.may_approve(attempt, by.pk, binding.rule, now=now):
        raise DecisionRefused("not-permitted", "You may not approve this tool.")
    return binding


def _shown_plainly(attempt: Attempt, window: KeyWindow) -> str | None:
    """A page shows the meaning without the choice of a new key, which is ticked on it."""
    plain = binding_of(attempt, window)
    return plain.shown if plain else None


def _changed_while_reading(attempt: Attempt, window: KeyWindow, shown: str) -> DecisionRefused:
    """Where all that has changed is what protects: which protection is gone."""
    first_sent_at, ends_at = window.first_sent_at, window.ends_at
    if first_sent_at is not None and ends_at is not None and not window.protects:
        protected = key_window_of(attempt, rule_of(attempt), first_sent_at)
        if shown == _shown_plainly(attempt, protected):
            return DecisionRefused(
                "protection-over",
                f"While you were reading, at {ends_at:%H:%M:%S} UTC, the provider forgot the key: if the "
                "earlier send did happen, a new one is a second effect now, and nothing prevents it. Read "
                "it again.",
            )
    return DecisionRefused(
        "changed-while-reading", "What would be sent changed while you were reading. Read it again."
    )


def _vote(desk: Desk, binding: Binding, why: str) -> Decided:
    case, attempt, by = desk.case, desk.attempt, desk.by
    before = attempt.votes.filter(approver=by, approval=None, voided_at=None)
    before.update(voided_at=case.now, void_cause="voted again")
    expires_at = case.now + timedelta(seconds=binding.vote_life_s)
    digest = binding.digest(approver_id=by.pk, expires_at=expires_at)
    said = {"digest": digest, "meaning": binding.meaning, "expires_at": expires_at.isoformat()}
    decided = desk.record(DecisionKind.APPROVE, why, event=EventKind.VOTED, **said)
    Vote.objects.create(
        tenant_id=attempt.tenant_id,
        decision=decided.decision,
        attempt=attempt,
        approver=by,
        policy=binding.policy,
        rule_hash=binding.rule.rule_hash,
        scopes=attempt.scopes,
        generation=binding.generation,
        twins=sorted({twin.operation_id for twin in _twins(case, attempt)}),
        meaning=binding.meaning,
        digest=digest,
        at=case.now,
        expires_at=expires_at,
    )
    return decided


def _twins(case: Case, attempt: Attempt) -> QuerySet[Attempt]:
    return twins_of(case.operation, tool=attempt.tool, args_hash=attempt.args_hash)


def _end_votes_for_another_key(case: Case, attempt: Attempt, binding: Binding) -> None:
    for vote in open_votes(attempt, case.now):
        if vote.generation != binding.generation:
            void_vote(case, attempt, vote, "another provider key was chosen")


def _count_votes(case: Case, attempt: Attempt, binding: Binding) -> None:
    votes = [
        vote
        for vote in open_votes(attempt, case.now)
        if approvals.may_approve(attempt, vote.approver_id, binding.rule, now=case.now)
    ]
    if len(votes) >= binding.needed:
        _approve(case, attempt, votes)


def _approve(case: Case, attempt: Attempt, votes: list[Vote]) -> None:
    drop_approval(case, attempt, "replaced")
    approval = case.approvals[attempt.pk] = Approval.objects.create(
        id=approval_id(),
        tenant_id=attempt.tenant_id,
        operation=case.operation,
        attempt=attempt,
        approved_at=case.now,
        expires_at=min(vote.expires_at for vote in votes),
    )
    Vote.objects.filter(pk__in=[vote.pk for vote in votes]).update(approval=approval)
    said = {"approval": approval.pk, "expires_at": approval.expires_at.isoformat(), "votes": len(votes)}
    if attempt.is_held:
        _supersede_unsent_sibling(case, attempt)
        move(case, attempt, State.INTENT_RECORDED, said=said)
    else:
        case.record(EventKind.APPROVAL_GIVEN, attempt, **said)


def _supersede_unsent_sibling(case: Case, held: Attempt) -> None:
    """A held variant or correction takes the one live place."""
    for sibling in case.attempts:
        if sibling.pk != held.pk and gives_way(sibling, held):
            move(case, sibling, State.SUPERSEDED, how=How.PERSON, said={"replaced_by": held.pk})
