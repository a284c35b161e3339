"""A yes ends with any change of what it stood on, stays on the page with the cause, and never comes back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from guardian.shortcuts import assign_perm, remove_perm

from ledger.approvals import conflicts_of
from ledger.lifecycle import LeaveGiven, LeaveRefused, cancel_operation, unlocked_case
from ledger.models import ApiKey, Approval, Attempt, Event, Tenant, User, Vote
from ledger.queries.invariants import findings
from ledger.reconciliation import sweep_once
from ledger.rules.authority import Reason
from ledger.rules.states import State
from ledger.rules.vocabulary import EventKind, ReviewReason
from ledger.transactions import database_clock, durable
from review import decisions
from review.door import NotPermitted
from review.queries import QueueFilters, Tab, queue
from review.roles import Role
from tests.review.pages import page_of
from tests.support import make
from tests.support.cast import Cast, person

WHY = "planned for tonight"
Change = Callable[[Cast, Attempt], object]


@pytest.fixture
def approved(people: Cast) -> Attempt:
    """A deployment that one person approved and whose agent has not come yet."""
    held = make.held(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why=WHY)
    return make.fresh(held)


def rule_changed(people: Cast, _: Attempt) -> None:
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.DEPLOY: STRICTER})


def tenant_suspended(people: Cast, _: Attempt) -> None:
    Tenant.objects.filter(pk=people.tenant.pk).update(suspended_at=database_clock())


def key_revoked(people: Cast, _: Attempt) -> None:
    ApiKey.objects.filter(pk=people.key.pk).update(revoked_at=database_clock())


def right_lost(people: Cast, _: Attempt) -> None:
    remove_perm("ledger.decide_work", people.approver, people.tenant)


def switched_off(people: Cast, _: Attempt) -> None:
    User.objects.filter(pk=people.approver.pk).update(is_active=False)


def now_owns_the_agent(people: Cast, _: Attempt) -> None:
    people.agent.owner = people.approver
    people.agent.save()


STRICTER = {**make.TOOLS[make.DEPLOY], "cost": {"amount": "/price"}}
CHANGES: dict[str, tuple[Change, str]] = {
    "rule": (rule_changed, "rule changed"),
    "tenant": (tenant_suspended, "tenant suspended"),
    "scope": (key_revoked, "scope changed"),
    "right": (right_lost, "approver lost the right"),
    "inactive": (switched_off, "approver lost the right"),
    "conflict": (now_owns_the_agent, "approver in conflict"),
}
every_change = pytest.mark.parametrize("change", CHANGES)


@every_change
def test_a_change_takes_the_approval_back_to_the_desk(people: Cast, approved: Attempt, change: str) -> None:
    happens, cause = CHANGES[change]
    happens(people, approved)
    assert sweep_once().voided == 1
    approval = Approval.objects.get()
    assert (approval.void_cause, approval.used_at) == (cause, None)
    assert Event.objects.filter(kind=EventKind.APPROVAL_VOIDED).get().data["cause"] == cause
    back = make.fresh(approved)
    assert back.state == State.MANUAL_REVIEW
    assert make.item_of(approved).reason in (ReviewReason.POLICY_CHANGED, ReviewReason.APPROVAL_REQUIRED)
    assert sweep_once().voided == 0
    assert list(findings()) == []


@every_change
def test_a_change_is_told_on_the_page_struck_through_with_its_cause(
    people: Cast, approved: Attempt, change: str
) -> None:
    happens, cause = CHANGES[change]
    happens(people, approved)
    sweep_once()
    (shown,) = page_of(people.second_approver, approved).votes.approvals
    assert (shown.status, shown.void_words, shown.by) == ("void", cause, ("approver",))


def test_a_right_given_back_brings_no_yes_back(people: Cast, approved: Attempt) -> None:
    right_lost(people, approved)
    sweep_once()
    assign_perm("ledger.decide_work", people.approver, people.tenant)
    refused = make.ask_leave(people.key, approved)
    assert isinstance(refused, LeaveRefused)
    assert refused.reasons == (Reason.APPROVER_REFUSED,)
    decisions.approve(people.approver, make.item_of(approved).pk, why="again")
    assert isinstance(make.ask_leave(people.key, approved), LeaveGiven)


def test_a_rule_changed_back_brings_no_yes_back(people: Cast, approved: Attempt) -> None:
    """Also where nobody looked in between: the versions themselves say it."""
    rule_changed(people, approved)
    make.policy(people.tenant, by=people.admin)
    refused = make.ask_leave(people.key, approved)
    assert isinstance(refused, LeaveRefused)
    assert refused.reasons == (Reason.APPROVAL_STALE,)
    assert not page_of(people.second_approver, approved).votes.holds


@pytest.mark.parametrize("swept", [False, True], ids=["before", "after"])
def test_the_agent_is_told_the_same_reason_before_and_after_the_sweep(
    people: Cast, approved: Attempt, swept: bool
) -> None:
    right_lost(people, approved)
    if swept:
        sweep_once()
    for _ in range(2):
        refused = make.ask_leave(people.key, approved)
        assert isinstance(refused, LeaveRefused)
        assert refused.reasons == (Reason.APPROVER_REFUSED,)
    assert Event.objects.filter(kind=EventKind.LEAVE_REFUSED).count() == 1


def test_one_vote_of_a_round_falls_alone(people: Cast) -> None:
    stricter = {**make.TOOLS[make.DEPLOY], "approvals": 2}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.DEPLOY: stricter})
    held = make.held(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why=WHY)
    right_lost(people, held)
    sweep_once()
    assert Vote.objects.get().void_cause == "approver lost the right"
    decisions.approve(people.second_approver, make.item_of(held).pk, why=WHY)
    assert make.fresh(held).state == State.MANUAL_REVIEW
    shown = page_of(people.second_approver, held).votes
    assert [(vote.by, vote.void_cause) for vote in shown.voided] == [("approver", "approver lost the right")]


def test_cancellation_and_a_positive_fact_end_it_at_once(people: Cast, approved: Attempt) -> None:
    durable(lambda: cancel_operation(key=people.key, operation_id=approved.operation_id, reason="no"))
    assert Approval.objects.get().void_cause == "operation cancelled"
    lost = make.for_a_person(people.key)
    decisions.approve(people.approver, make.item_of(lost).pk, why=WHY)
    make.reported(people.key, lost, "succeeded", result_ref="tkt_1")
    assert Approval.objects.get(attempt=lost).void_cause == "success reported"


def test_corrected_arguments_end_it_and_the_old_yes_stays_visible(people: Cast) -> None:
    lost = make.for_a_person(people.key)
    decisions.approve(people.approver, make.item_of(lost).pk, why=WHY)
    decisions.relink_arguments(
        people.operator, make.item_of(lost).pk, why="typo", typed='{"title": "Printer"}'
    )
    assert Approval.objects.get().void_cause == "arguments corrected"
    corrected = unlocked_case(lost.operation).newest
    (earlier,) = page_of(people.second_approver, corrected).votes.earlier
    assert (earlier.attempt_number, earlier.void_words, earlier.by) == (
        1,
        "arguments corrected",
        ("approver",),
    )


class TestDangerousEffects:
    """Who edited arguments or rule within 24 h does not approve, whoever edited after them."""

    def test_an_earlier_correction_within_a_day(self, people: Cast) -> None:
        held = make.held(people.key)
        decisions.relink_arguments(people.approver, make.item_of(held).pk, why="x", typed='{"version": "1"}')
        first = unlocked_case(held.operation).newest
        decisions.relink_arguments(people.operator, make.item_of(first).pk, why="y", typed='{"version": "2"}')
        second = unlocked_case(held.operation).newest
        with pytest.raises(NotPermitted, match="edited arguments of this operation within"):
            decisions.approve(people.approver, make.item_of(second).pk, why=WHY)
        decided = decisions.approve(people.second_approver, make.item_of(second).pk, why=WHY)
        assert decided.state == State.INTENT_RECORDED

    def test_an_earlier_change_of_the_rule_within_a_day(self, people: Cast) -> None:
        publisher = person("publisher", people.tenant, Role.ADMIN, Role.APPROVER)
        make.policy(people.tenant, by=publisher, tools={**make.TOOLS, make.DEPLOY: STRICTER})
        make.policy(people.tenant, by=people.admin)
        held = make.item_of(make.held(people.key))
        with pytest.raises(NotPermitted, match="edited the rule of this tool within"):
            decisions.approve(publisher, held.pk, why=WHY)

    def test_a_day_later_they_may(self, people: Cast) -> None:
        publisher = person("publisher", people.tenant, Role.ADMIN, Role.APPROVER)
        make.policy(people.tenant, by=publisher, tools={**make.TOOLS, make.DEPLOY: STRICTER})
        make.policy(people.tenant, by=people.admin)
        held, now = make.held(people.key), database_clock()
        assert conflicts_of(held, publisher.pk, now=now + timedelta(hours=23))
        assert not conflicts_of(held, publisher.pk, now=now + timedelta(hours=25))

    def test_other_effects_only_bar_the_last_editor(self, people: Cast) -> None:
        publisher = person("publisher", people.tenant, Role.ADMIN, Role.APPROVER)
        ticket = {**make.TOOLS[make.TICKET], "approvals": 2}
        make.policy(people.tenant, by=publisher, tools={**make.TOOLS, make.TICKET: ticket})
        make.policy(people.tenant, by=people.admin)
        lost = make.for_a_person(people.key)
        assert decisions.approve(publisher, make.item_of(lost).pk, why=WHY).decision.by == publisher


def test_approved_work_stays_listed_with_what_follows_if_its_agent_never_comes(
    people: Cast, approved: Attempt
) -> None:
    (row,) = queue(people.operator, QueueFilters(tab=Tab.WAITING)).rows
    assert row.attempt_id == approved.pk
    assert row.next_step.at == Approval.objects.get().expires_at
    assert "expires unused and the question comes back; nothing is sent" in row.next_step.if_nobody_acts
