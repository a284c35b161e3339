"""The page of one review item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import OuterRef, Subquery

from ledger.approvals import Binding, binding_of
from ledger.authority import key_window_of
from ledger.lifecycle import offers_for, twins_of, unlocked_case
from ledger.lifecycle.case import Case
from ledger.models import Approval, Attempt, Decision, ReviewItem, User
from ledger.policies import hiding_too, rule_as_shown, rule_of, rule_of_next_send, veil_over
from ledger.queries.arguments import sentence_of
from ledger.rules.authority import Reason
from ledger.rules.masks import Veil, one_veil
from ledger.rules.next_step import NextStep
from ledger.rules.policy import Rule
from ledger.rules.states import State
from ledger.rules.vocabulary import ReviewReason
from ledger.transactions import one_reading
from review.door import Entry, enter, enter_among
from review.duties import conflicts
from review.people import People
from review.queries.actions import Presser, actions_of
from review.queries.arguments import arguments_of, compared
from review.queries.became import approved_words, became, closing_of, told, waiting_words
from review.queries.history import (
    chain_views,
    decision_view,
    decisions_of,
    events_of,
    evidence_of,
)
from review.queries.lanes import lanes_of
from review.queries.marked import marked_text
from review.queries.page import (
    ActionView,
    AgentWords,
    Arguments,
    AssigneeView,
    Comparison,
    ItemPage,
    TwinView,
    Votes,
)
from review.queries.rows import claim_of, escalated, is_overdue, owner_of, snoozed_until, waits_on
from review.queries.sides import sides_of
from review.queries.steps import next_step
from review.queries.tenants import tenant_view
from review.queries.then_now import Standpoint, policy_changes, standpoint_of, then_now_rows
from review.queries.values import Closing
from review.queries.voting import (
    ballot_of,
    cast_votes,
    facts_of,
    votes_of,
    waiting_approval,
    with_authority,
    with_earlier,
)
from review.queries.words import EFFECT_WORDS, NOT_KNOWN, REASON_WORDS

MOST_COMPARED = 3
MOST_TWINS = 5


@dataclass(frozen=True)
class _Read:
    """Everything read for one page."""

    user: User
    entry: Entry
    now: datetime
    rule: Rule
    standpoint: Standpoint
    binding: Binding | None
    approval: Approval | None
    case: Case
    people: People
    barred: Mapping[int, str]
    votes: Votes
    decisions: list[Decision]

    @property
    def attempt(self) -> Attempt:
        return self.entry.item.attempt


def item_page(user: User, item_id: str) -> ItemPage:
    """Everything about one question. Raises `NotVisible` (a 404) without the right to see it."""
    entry, people = enter_among(user, item_id)
    with one_reading():
        read = _read(user, entry, people)
        return _with_whose(_page(read), read)


def item_arguments(user: User, item_id: str) -> Arguments:
    """The arguments of an item in full, however long. Raises `NotVisible`."""
    attempt = enter(user, item_id).item.attempt
    return arguments_of(attempt, rule_as_shown(attempt), in_full=True)


def _read(user: User, entry: Entry, people: People) -> _Read:
    attempt, now = entry.item.attempt, entry.now
    rule, barred = rule_of(attempt), conflicts(attempt, now=now)
    binding = binding_of(attempt, key_window_of(attempt, rule, now))
    standpoint, decisions = standpoint_of(attempt, rule=rule, now=now), decisions_of(attempt.operation)
    earlier = cast_votes([one for one in decisions if one.attempt_id != attempt.pk])
    decisions = [one for one in decisions if one.attempt_id == attempt.pk]
    every_vote = cast_votes(decisions)
    votes = votes_of(attempt, every_vote, binding, people, barred, now)
    approval = waiting_approval(every_vote)
    if approval is not None:
        facts = facts_of(approval, every_vote, binding, people, barred)
        votes = with_authority(votes, standpoint.refused_with(facts))
    case = unlocked_case(attempt.operation)
    return _Read(
        user=user,
        entry=entry,
        now=now,
        rule=rule,
        standpoint=standpoint,
        binding=binding,
        approval=approval,
        case=case,
        people=people,
        barred=barred,
        votes=with_earlier(votes, earlier, case.attempts, now),
        decisions=decisions,
    )


def _sends_by(read: _Read) -> Rule:
    return rule_of_next_send(read.attempt, read.standpoint.in_force)


def _page(read: _Read) -> ItemPage:
    item, attempt, now = read.entry.item, read.attempt, read.now
    operation, reason = attempt.operation, ReviewReason(item.reason)
    shown, veil = rule_as_shown(attempt), one_veil(map(veil_over, read.case.attempts))
    sentence, closing = sentence_of(attempt, shown), _closing(read)
    return ItemPage(
        item_id=item.pk,
        tenant=tenant_view(read.entry.tenant),
        operation_id=operation.pk,
        operation_key=operation.operation_key,
        outcome=operation.outcome,
        attempt_id=attempt.pk,
        attempt_number=attempt.number,
        agent=attempt.agent.name,
        agent_owner=attempt.agent.owner.get_username(),
        requested_by=_name(attempt.requested_by),
        arguments_by=_name(attempt.arguments_by),
        tool=attempt.tool,
        effect=read.rule.effect,
        effect_words=EFFECT_WORDS[read.rule.effect],
        state=State(attempt.state),
        reason=reason,
        reason_words=REASON_WORDS[reason],
        not_known=NOT_KNOWN[reason],
        headline=veil.over_text(_headline(read, closing)),
        sentence=sentence,
        sentence_segments=marked_text(sentence),
        opened_at=item.opened_at,
        entered_state_at=attempt.entered_state_at,
        due_at=item.due_at,
        overdue=is_overdue(item, now),
        escalated=escalated(item),
        closing=closing,
        owner=owner_of(item, read.user.pk, read.now),
        claim=claim_of(item, read.user.pk, now),
        ledger_sends=_by_ledger(read),
        next_step=_next_step(read),
        evidence=evidence_of(attempt, read.rule, veil, now),
        arguments=arguments_of(attempt, shown),
        then_now=then_now_rows(read.standpoint),
        may_send_now=not read.standpoint.refused,
        provider_keeps_keys=(read.binding.rule if read.binding else read.rule).idempotent,
        policy_changes=policy_changes(read.standpoint),
        chain=chain_views(read.case, attempt, veil),
        comparisons=_comparisons(read, shown),
        twins=_twins(attempt),
        votes=read.votes,
        ballot=ballot_of(read.binding, now),
        sides=sides_of(attempt, read.decisions, veil, read.user),
        actions=_actions(read),
        assignees=_assignees(read),
        agent_words=_agent_words(attempt, veil),
        decisions=tuple(decision_view(decision) for decision in read.decisions),
        events=events_of(operation, read.case.attempts, veil),
        events_total=operation.event_count,
        head=operation.event_count,
        rights=read.entry.rights,
        as_of=now,
        lanes=lanes_of(operation, read.case.attempts, now),
    )


def _next_step(read: _Read) -> NextStep:
    return next_step(
        read.entry.item,
        read.rule,
        _approval_to_come(read),
        read.now,
        sends_by=_sends_by(read),
        ever_held=read.case.ever_held(read.attempt),
    )


def _with_whose(page: ItemPage, read: _Read) -> ItemPage:
    """Whose it is beside owner and claim."""
    item = read.entry.item
    return replace(
        page,
        colleagues=_colleagues(read),
        snoozed_until=snoozed_until(item, read.now),
        waits_on=waits_on(item),
    )


def _actions(read: _Read) -> tuple[ActionView, ...]:
    in_force = read.standpoint.in_force.rule
    presser = Presser(
        user=read.user,
        entry=read.entry,
        claim=claim_of(read.entry.item, read.user.pk, read.now),
        votes=read.votes,
        administrators=tuple(person.get_username() for person in read.people.administrators),
        barred=read.barred.get(read.user.pk),
        has_voted=any(vote.by == read.user.get_username() for vote in read.votes.open),
        tool=read.attempt.tool,
        effect=(in_force or read.rule).effect,
        approval_answers=_approval_answers(read),
    )
    return actions_of(presser, offers_for(read.entry.item))


def _approval_answers(read: _Read) -> tuple[Reason, ...]:
    """What leave would be refused for now and a yes settles: why the waiting approval covers the send no
    longer, or why what was sent may not be sent again without one."""
    if read.approval is not None:
        return read.votes.lapsed
    standpoint = read.standpoint
    unapproved = standpoint.refused_unapproved if read.attempt.was_sent else ()
    return tuple(reason for reason in unapproved if reason not in standpoint.refused)


def _assignees(read: _Read) -> tuple[AssigneeView, ...]:
    """Whom this person may give the item to: everybody who decides there, or themselves and their groups."""
    rights = read.entry.rights
    if not (rights.administer or rights.decide):
        return ()
    people = read.people.deciders if rights.administer else (read.user,)
    groups = read.entry.groups if rights.administer else read.entry.own_groups
    return (
        *(AssigneeView(person.get_username(), person.get_username()) for person in people),
        *(AssigneeView(f"#{name}", f"Group {name}") for name in groups),
    )


def _colleagues(read: _Read) -> tuple[AssigneeView, ...]:
    """Everybody else who decides there."""
    names = [person.get_username() for person in read.people.deciders if person != read.user]
    return tuple(AssigneeView(name, name) for name in names)


def _twins(attempt: Attempt) -> tuple[TwinView, ...]:
    open_item = ReviewItem.objects.filter(attempt_id=OuterRef("pk"), closed_at=None).values("pk")[:1]
    twins = twins_of(attempt.operation, tool=attempt.tool, args_hash=attempt.args_hash)
    return tuple(
        TwinView(
            operation_key=twin.operation.operation_key,
            number=twin.number,
            state=State(twin.state),
            sent=twin.was_sent,
            created_at=twin.created_at,
            open_item_id=twin.open_item_id,
        )
        for twin in twins.annotate(open_item_id=Subquery(open_item))[:MOST_TWINS]
    )


def _comparisons(read: _Read, shown: Rule) -> tuple[Comparison, ...]:
    """Against the newest attempts of the operation with other content, perhaps of another tool; what either
    hides stays hidden."""
    others = [other for other in reversed(read.case.attempts) if other.args_hash != read.attempt.args_hash]
    return tuple(
        compared(read.attempt, other, hiding_too(shown, rule_as_shown(other)).mask)
        for other in others[:MOST_COMPARED]
    )


def _agent_words(attempt: Attempt, veil: Veil) -> AgentWords:
    operation = attempt.operation
    return AgentWords(
        actor=marked_text(veil.over_text(attempt.actor)),
        run=operation.run.name if operation.run else "",
        step=operation.step,
        task_id=operation.task_id,
        cancel_reason=marked_text(veil.over_text(operation.cancel_reason)),
    )


def _by_ledger(read: _Read) -> bool:
    return _sends_by(read).executor == "ledger"


def _approval_to_come(read: _Read) -> Approval | None:
    """The waiting approval as long as time alone ends it; one that covers nothing leads to no step."""
    return read.approval if set(read.votes.lapsed) <= {Reason.APPROVAL_EXPIRED} else None


def _closing(read: _Read) -> Closing | None:
    item = read.entry.item
    return closing_of(item, [decision for decision in read.decisions if _answers(decision, item)])


def _answers(decision: Decision, item: ReviewItem) -> bool:
    """Was it given to this question, or at the moment this one closed? Taking an approval back opens and
    closes one of its own."""
    return decision.item_id == item.pk or decision.at == item.closed_at


def _headline(read: _Read, closing: Closing | None) -> str:
    """What is not known, or what became of it as soon as it was decided."""
    item, votes = read.entry.item, read.votes
    if closing is not None:
        return became(item, read.case, closing, by_ledger=_by_ledger(read))
    if votes.waiting is not None and votes.holds:
        return told(approved_words(votes.waiting.by), waiting_words(by_ledger=_by_ledger(read)))
    return NOT_KNOWN[ReviewReason(item.reason)]


def _name(person: User | None) -> str | None:
    return person.get_username() if person else None
