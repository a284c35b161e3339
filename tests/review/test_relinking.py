"""Relinked to another operation: what that one became is the answer, and it is left as it was."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.lifecycle import Decided, DecisionRefused, LeaveGiven, LeaveRefused, standing_of
from ledger.models import Attempt, Operation, ReviewItem, Settlement
from ledger.queries.invariants import findings
from ledger.rules.directive import Directive
from ledger.rules.looked_up import LookedUpKind, Record
from ledger.rules.states import Outcome, State
from ledger.rules.vocabulary import DecisionKind, ReviewReason
from review import decisions
from review.door import NotPermitted
from review.queries import NotVisible
from review.queries.candidates import relink_candidates
from review.queries.duplicates import duplicates_page
from tests.review.pages import action, page_of
from tests.support import make
from tests.support.cast import Cast, cast
from tests.support.races import at_once

WHY = "the agent used a second key"


@pytest.fixture
def orphan(people: Cast) -> Attempt:
    """Sent, and nobody knows what became of it."""
    return make.for_a_person(people.key, operation_key="ticket:b")


def relink(people: Cast, attempt: Attempt, to: str, **more: Any) -> Decided:
    item = make.item_of(attempt)
    return decisions.relink_operation(people.operator, item.pk, why=WHY, target_key=to, **more)


def refused(people: Cast, attempt: Attempt, to: str, **more: Any) -> str:
    with pytest.raises(DecisionRefused) as error:
        relink(people, attempt, to, **more)
    assert make.fresh(attempt).relinked_to_id is None
    return error.value.code


class TestSent:
    def test_the_confirmed_operation_answers_for_it(self, people: Cast, orphan: Attempt) -> None:
        target = make.confirmed(people.key, make.TICKET, operation_key="ticket:a", result_ref="tkt_1")
        before = make.fresh(target).operation.event_count
        assert relink(people, orphan, "ticket:a").state == State.SUPERSEDED
        ended = make.fresh(orphan)
        assert (ended.relinked_to_id, ended.operation.outcome) == (target.operation_id, Outcome.RELINKED)
        standing = standing_of(ended)
        assert (standing.directive, standing.result_ref) == (Directive.DONE, "tkt_1")
        assert Settlement.objects.get(operation=ended.operation).outcome == Outcome.RELINKED
        assert make.fresh(target).operation.event_count == before
        assert list(findings()) == []

    def test_one_that_was_only_sent_will_answer(self, people: Cast, orphan: Attempt) -> None:
        target = make.dispatched(people.key, make.TICKET, operation_key="ticket:a")
        relink(people, orphan, "ticket:a")
        assert standing_of(make.fresh(orphan)).directive is Directive.IN_FLIGHT
        make.reported(people.key, target, "succeeded", result_ref="tkt_9")
        assert standing_of(make.fresh(orphan)).result_ref == "tkt_9"

    def test_what_was_never_sent_cannot_answer(self, people: Cast, orphan: Attempt) -> None:
        make.recorded(people.key, make.TICKET, operation_key="ticket:a")
        assert refused(people, orphan, "ticket:a") == "target-unsent"

    def test_no_new_operation_is_opened_for_it(self, people: Cast, orphan: Attempt) -> None:
        assert refused(people, orphan, "ticket:new", new=True) == "target-unknown"
        assert not Operation.objects.filter(operation_key="ticket:new").exists()


class TestTarget:
    def test_it_must_exist_in_this_tenant_under_the_same_tool(self, people: Cast, orphan: Attempt) -> None:
        foreign = make.key(make.agent(people.other_tenant, people.stranger))
        make.confirmed(foreign, make.TICKET, operation_key="ticket:elsewhere")
        make.confirmed(people.key, make.MAIL, operation_key="mail:a")
        assert refused(people, orphan, "ticket:elsewhere") == "target-unknown"
        assert refused(people, orphan, "ticket:nowhere") == "target-unknown"
        assert refused(people, orphan, "mail:a") == "target-tool"
        assert refused(people, orphan, "ticket:b") == "target-itself"

    def test_it_is_not_relinked_itself_and_never_leads_back(self, people: Cast, orphan: Attempt) -> None:
        make.confirmed(people.key, make.TICKET, operation_key="ticket:a")
        other = make.for_a_person(people.key, operation_key="ticket:c")
        relink(people, other, "ticket:a")
        assert refused(people, orphan, "ticket:c") == "target-relinked"

    @pytest.mark.django_db(transaction=True)
    def test_two_relinked_to_each_other_at_once_leave_one(self) -> None:
        people = cast()
        one, two = (make.for_a_person(people.key, operation_key=f"ticket:{name}") for name in "xy")
        answers = at_once(lambda: relink(people, one, "ticket:y"), lambda: relink(people, two, "ticket:x"))
        assert sorted(isinstance(answer, Decided) for answer in answers) == [False, True]
        assert Attempt.objects.filter(relinked_to__isnull=False).count() == 1


class TestHeld:
    def test_a_held_one_gets_a_key_of_its_own(self, people: Cast) -> None:
        first = make.dispatched(people.key, make.TICKET, operation_key="ticket:a")
        held = make.variant(people.key, first, {"title": "Lift stuck"})
        relink(people, held, "ticket:lift", new=True)
        (opened,) = Operation.objects.get(operation_key="ticket:lift").attempts.all()
        assert (opened.state, opened.args_hash) == (State.MANUAL_REVIEW, held.args_hash)
        assert opened.reason == ReviewReason.APPROVAL_REQUIRED
        assert make.fresh(first).operation.outcome == Outcome.OPEN
        assert isinstance(make.ask_leave(people.key, opened), LeaveRefused)
        decisions.approve(people.approver, make.item_of(opened).pk, why="two tickets")
        assert isinstance(make.ask_leave(people.key, opened), LeaveGiven)
        assert list(findings()) == []

    def test_a_known_key_is_no_new_one(self, people: Cast) -> None:
        make.recorded(people.key, make.TICKET, operation_key="ticket:a")
        held = make.held(people.key)
        assert refused(people, held, "ticket:a", new=True) == "target-known"
        assert refused(people, held, "", new=True) == "target-unreadable"
        assert refused(people, held, "a\nb", new=True) == "target-unreadable"


@pytest.mark.parametrize("verb", [decisions.relink_operation, decisions.intended_repeat])
def test_it_takes_the_right_to_decide(people: Cast, orphan: Attempt, verb: Any) -> None:
    item = make.item_of(orphan).pk
    named = {"target_key": "x"} if verb is decisions.relink_operation else {}
    for user in people.not_deciding:
        with pytest.raises(NotPermitted):
            verb(user, item, why=WHY, **named)
    for user in people.blind:
        with pytest.raises(NotVisible):
            verb(user, item, why=WHY, **named)


def test_a_suspected_duplicate_that_was_meant_still_needs_its_approval(people: Cast) -> None:
    make.dispatched(people.key, make.TICKET, run="nightly", step="7")
    twin = make.recorded(people.key, make.TICKET, run="nightly", step="7")
    assert twin.reason == ReviewReason.SUSPECTED_DUPLICATE
    assert action(page_of(people.operator, twin), DecisionKind.INTENDED_REPEAT).enabled
    decided = decisions.intended_repeat(people.operator, make.item_of(twin).pk, why="two printers")
    assert len(decided.decision.data["twins"]) == 1
    assert (decided.state, make.item_of(twin).reason) == (State.MANUAL_REVIEW, ReviewReason.APPROVAL_REQUIRED)
    with pytest.raises(DecisionRefused):
        decisions.intended_repeat(people.operator, make.item_of(twin).pk, why="again")
    assert isinstance(make.ask_leave(people.key, twin), LeaveRefused)
    decisions.approve(people.approver, make.item_of(twin).pk, why="both")
    assert isinstance(make.ask_leave(people.key, twin), LeaveGiven)


def test_candidates_say_what_speaks_for_them(people: Cast) -> None:
    lost = make.unknown(people.key, make.REFUND, operation_key="refund:lost")
    several = [Record(reference=name, content="same", state="done", data={}) for name in ("re_1", "re_2")]
    make.looked_up(lost, LookedUpKind.FOUND, *several)
    make.confirmed(people.key, make.REFUND, operation_key="refund:same", result_ref="re_1")
    more = {"amount": 125, "currency": "EUR", "customer": "cus_8"}
    make.recorded(people.key, make.REFUND, operation_key="refund:amount", args=more)
    make.confirmed(people.key, make.MAIL, operation_key="mail:other")
    found = {one.operation_key: one.why for one in relink_candidates(people.operator, make.item_of(lost).pk)}
    assert found == {
        "refund:same": (
            "the same arguments",
            "the same reference",
            "the same amount",
            "around the same time",
        ),
        "refund:amount": ("the same amount", "around the same time"),
    }


def test_the_radar_shows_what_may_have_been_done_twice(people: Cast) -> None:
    one = make.dispatched(people.key, make.TICKET, operation_key="ticket:a")
    make.confirmed(people.key, make.TICKET, operation_key="ticket:b")
    make.variant(people.key, one, {"title": "Lift stuck"})
    lost = make.unknown(people.key, make.MAIL, operation_key="mail:a")
    several = [Record(reference=name, content="same", state="done", data={}) for name in ("m_1", "m_2")]
    make.looked_up(lost, LookedUpKind.FOUND, *several)
    page = duplicates_page(people.viewer)
    (keys,), (hashes,), (records,) = page.keys, page.hashes, page.records
    assert [member.operation_key for member in keys.members] == ["ticket:a", "ticket:b"]
    assert [member.operation_key for member in hashes.members] == ["ticket:a", "ticket:a"]
    assert records.names == ("m_1", "m_2")
    assert [member.operation_key for member in records.members] == ["mail:a"]
    assert ReviewItem.objects.filter(pk=records.members[0].item_id).exists()
    for user in people.blind:
        unseen = duplicates_page(user)
        assert (unseen.keys, unseen.hashes, unseen.records) == ((), (), ())
