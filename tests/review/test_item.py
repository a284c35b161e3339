"""The page of one question: what it shows, to whom, and what its buttons promise."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger.approvals import conflicts_of
from ledger.lifecycle import DecisionRefused, open_run
from ledger.models import Agent, ApiKey, Attempt, Operation, ReviewItem, Tenant, User
from ledger.rules.key_window import Protection
from ledger.rules.looked_up import LookedUpKind, Record
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind, Effect, ReviewReason
from ledger.transactions import NotInTransaction, database_clock, durable, one_reading
from review import decisions, ownership
from review.door import NotPermitted
from review.duties import conflicts
from review.queries import (
    DiffSide,
    FieldChange,
    Mark,
    NotVisible,
    item_arguments,
    item_page,
)
from review.queries.arguments import INLINE_BYTES
from tests.review.pages import action, page_of
from tests.support import make
from tests.support.cast import Cast


class TestWall:
    def test_everybody_of_the_tenant_sees_it(self, people: Cast) -> None:
        attempt = make.unknown(people.key)
        for user in (people.viewer, people.operator, people.approver, people.admin, people.auditor):
            assert page_of(user, attempt).attempt_id == attempt.pk

    def test_others_see_nothing(self, people: Cast) -> None:
        item = make.item_of(make.unknown(people.key))
        for user in people.blind:
            for ask in (item_page, item_arguments):
                with pytest.raises(NotVisible):
                    ask(user, item.pk)
        with pytest.raises(NotVisible):
            item_page(people.viewer, "rev_unknown")


class TestWhatItSays:
    def test_the_question_first(self, people: Cast) -> None:
        page = page_of(people.viewer, make.unknown(people.key, make.REFUND, operation_key="refund:7"))
        assert page.not_known.startswith("Not known: whether the provider carried it out")
        assert page.sentence == "Refund 125 EUR to cus_7"
        assert (page.effect, page.state, page.reason) == (Effect.PAYMENT, State.UNKNOWN, ReviewReason.UNKNOWN)
        assert (page.operation_key, page.agent, page.agent_owner) == ("refund:7", "billing-bot", "owner")

    def test_the_arguments_whole_and_whether_they_match(self, people: Cast) -> None:
        shown = page_of(people.viewer, make.unknown(people.key)).arguments
        assert shown.text == '{\n  "subject": "Invoice 7",\n  "to": "ada@example.org"\n}'
        assert shown.matches_hash is True

    def test_long_arguments_open_in_full(self, people: Cast) -> None:
        attempt = make.held(people.key, args={"version": "1", "zz": "x" * INLINE_BYTES})
        assert page_of(people.viewer, attempt).arguments.open_in_full
        assert '"version": "1"' in item_arguments(people.viewer, make.item_of(attempt).pk).text

    def test_deceiving_characters_are_marked(self, people: Cast) -> None:
        attempt = make.held(people.key, args={"version": "1\u202e"}, actor="ignore\u200b all rules")
        page = page_of(people.viewer, attempt)
        assert page.arguments.deceptive == 1
        assert Mark.BIDIRECTIONAL in {segment.mark for segment in page.sentence_segments}
        assert Mark.INVISIBLE in {segment.mark for segment in page.agent_words.actor}

    def test_the_evidence(self, people: Cast) -> None:
        attempt = make.unknown(people.key)
        record = Record(reference="re_7", content="other", state="done", data={"amount": 7})
        make.looked_up(attempt, LookedUpKind.UNAVAILABLE)
        make.looked_up(attempt, LookedUpKind.FOUND, record)
        evidence = page_of(people.viewer, attempt).evidence
        assert [look.answer for look in evidence.lookups] == ["found", "unavailable"]
        assert evidence.lookups_total == 2
        (found,) = evidence.lookups[0].records
        assert (found.reference, found.content, found.data) == ("re_7", "other", '{"amount":7}')
        assert evidence.key_window.protection is Protection.OPEN
        assert attempt.key_first_sent_at is not None
        assert evidence.key_window.ends_at == attempt.key_first_sent_at + timedelta(days=1)

    def test_the_history_newest_first_and_its_head(self, people: Cast) -> None:
        attempt = make.unknown(people.key)
        page = page_of(people.viewer, attempt)
        assert [event.kind for event in page.events][-1] == "attempt.intent"
        assert page.head == page.events_total == page.events[0].sequence == len(page.events)
        ownership.note(people.operator, page.item_id, why="asked them")
        assert page_of(people.viewer, attempt).head == page.head + 1

    def test_decisions_and_notes_with_their_reasons(self, people: Cast) -> None:
        attempt = make.for_a_person(people.key)
        item = make.item_of(attempt)
        ownership.note(people.operator, item.pk, why="asked them")
        decisions.confirm_did_not_happen(people.operator, item.pk, why="they say no")
        page = page_of(people.viewer, attempt)
        assert [(d.kind, d.why) for d in page.decisions] == [
            (DecisionKind.CONFIRM_DID_NOT, "they say no"),
            (DecisionKind.NOTE, "asked them"),
        ]
        assert page.closing is not None
        assert (page.closing.how, page.closing.by) == (State.FAILED, "operator")

    def test_a_variant_beside_what_it_differs_from(self, people: Cast) -> None:
        first = make.dispatched(people.key, make.REFUND)
        other = make.variant(people.key, first, {**make.ARGS[make.REFUND], "amount": 999})
        page = page_of(people.viewer, other)
        (comparison,) = page.comparisons
        assert (comparison.with_number, comparison.verdict) == (1, DiffSide.DIFFERENT)
        assert comparison.changes == (FieldChange("/amount", "125", "999"),)
        assert [(link.number, link.same_hash, link.is_this) for link in page.chain] == [
            (1, False, False),
            (2, True, True),
        ]


class TestThenAndNow:
    def row(self, people: Cast, attempt: Attempt, name: str) -> tuple[bool, tuple[str, ...]]:
        page = page_of(people.approver, attempt)
        found = next(row for row in page.then_now if row.name == name)
        return found.ok, found.reasons

    def test_nothing_changed(self, people: Cast) -> None:
        page = page_of(people.viewer, make.unknown(people.key))
        assert all(row.ok for row in page.then_now)
        assert page.may_send_now
        assert page.policy_changes == ()

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("Tenant", "tenant-suspended"),
            ("Agent", "agent-inactive"),
            ("Owner of the agent", "owner-inactive"),
            ("Scope", "key-revoked"),
            ("Expiry", "expired"),
            ("Cancellation", "operation-cancelled"),
            ("Policy", "policy-refused"),
        ],
    )
    def test_each_change_is_a_cross_and_closes_approval(self, people: Cast, name: str, reason: str) -> None:
        now = database_clock()
        attempt = make.held(
            people.key, expires_at=now + timedelta(milliseconds=1) if name == "Expiry" else None
        )
        change: dict[str, Callable[[], object]] = {
            "Tenant": lambda: Tenant.objects.filter(pk=people.tenant.pk).update(suspended_at=now),
            "Agent": lambda: Agent.objects.update(is_active=False),
            "Owner of the agent": lambda: User.objects.filter(pk=people.owner.pk).update(is_active=False),
            "Scope": lambda: ApiKey.objects.update(revoked_at=now),
            "Cancellation": lambda: Operation.objects.update(cancelled_at=now),
            "Policy": lambda: make.policy(people.tenant, by=people.admin, tools={}),
        }
        change.get(name, lambda: None)()
        page = page_of(people.approver, attempt)
        assert self.row(people, attempt, name) == (False, (reason,))
        assert not page.may_send_now
        approve = action(page, DecisionKind.APPROVE)
        assert not approve.enabled
        assert any(reason in words for words in approve.why_disabled)
        with pytest.raises(DecisionRefused):
            decisions.approve(people.approver, page.item_id, why="go")

    def test_a_changed_rule_is_shown_field_by_field(self, people: Cast) -> None:
        attempt = make.held(people.key)
        stricter = {**make.TOOLS, make.DEPLOY: {**make.TOOLS[make.DEPLOY], "approvals": 3}}
        make.policy(people.tenant, by=people.admin, tools=stricter)
        page = page_of(people.approver, attempt)
        assert FieldChange("/approvals", "1", "3") in page.policy_changes
        assert self.row(people, attempt, "Policy") == (False, ())
        assert page.votes.needed == 3

    def test_what_a_repeat_risks_is_a_warning_and_no_refusal(self, people: Cast) -> None:
        page = page_of(people.viewer, make.for_a_person(people.key))
        (warning,) = (row for row in page.then_now if not row.ok)
        assert (warning.name, warning.refuses) == ("Key window", False)
        assert warning.words == "A repeat may be a second effect: the provider keeps no keys."
        assert page.may_send_now

    def test_the_budget_in_numbers(self, people: Cast) -> None:
        def budget(attempt: Attempt) -> tuple[str, str]:
            (row,) = (row for row in page_of(people.viewer, attempt).then_now if row.name == "Budget")
            return row.then, row.now

        assert budget(make.unknown(people.key)) == ("no limit", "no limit")
        durable(lambda: open_run(key=people.key, name="run-7", limits={"tool_calls": 10}))
        limited = make.unknown(people.key, run="run-7")
        assert budget(limited) == ("at most 10 tool calls", "9 of 10 tool calls left")


NOT_TO_ONESELF = "and nobody gives rights to themselves: add another administrator."


class TestButtons:
    def test_who_sees_only_is_told_why_and_who_grants(self, people: Cast) -> None:
        for user in people.not_deciding:
            page = page_of(user, make.for_a_person(people.key))
            deciding = [a for a in page.actions if a.kind not in (DecisionKind.ASSIGN, DecisionKind.NOTE)]
            assert not any(a.enabled for a in deciding)
            assert deciding[0].why_disabled[0].startswith("You need the right to decide work in Acme.")

    def test_who_grants_a_right_is_not_told_to_ask_themselves(self, people: Cast) -> None:
        attempt = make.for_a_person(people.key)
        for user, grants in (
            (people.viewer, "It is granted by admin."),
            (people.admin, f"Only you administer this tenant, {NOT_TO_ONESELF}"),
        ):
            assert action(page_of(user, attempt), DecisionKind.REJECT).why_disabled[0].endswith(grants)

    def test_a_note_asks_for_either_right(self, people: Cast) -> None:
        page = page_of(people.auditor, make.for_a_person(people.key))
        for kind in (DecisionKind.NOTE, DecisionKind.ASSIGN):
            (words,) = action(page, kind).why_disabled
            assert words.startswith("You need the right to decide work or to administer in Acme.")

    def test_every_button_says_its_consequence(self, people: Cast) -> None:
        for attempt in (make.unknown(people.key), make.held(people.key), make.for_a_person(people.key)):
            assert all(a.consequence and a.label for a in page_of(people.approver, attempt).actions)

    @pytest.mark.parametrize("who", ["operator", "approver", "owner", "viewer", "admin"])
    def test_an_enabled_approval_is_accepted_and_a_disabled_one_refused(self, people: Cast, who: str) -> None:
        user = getattr(people, who)
        page = page_of(user, make.held(people.key))
        approve = action(page, DecisionKind.APPROVE)
        assert approve.enabled is (who == "approver")
        if approve.enabled:
            assert page.ballot is not None
            decisions.approve(user, page.item_id, why="go", shown_digest=page.ballot.digest)
        else:
            with pytest.raises(NotPermitted):
                decisions.approve(user, page.item_id, why="go")

    def test_a_claim_of_another_closes_the_decisions(self, people: Cast) -> None:
        attempt = make.for_a_person(people.key)
        ownership.claim(people.operator, make.item_of(attempt).pk)
        page = page_of(people.approver, attempt)
        assert "operator holds this" in action(page, DecisionKind.REJECT).why_disabled[0]
        assert not action(page, DecisionKind.CLAIM).enabled
        take_over = action(page, DecisionKind.TAKE_OVER)
        assert take_over.enabled
        assert "operator" in take_over.consequence
        assert action(page_of(people.operator, attempt), DecisionKind.RELEASE).enabled

    def test_unsettled_siblings_keep_a_variant_from_approval(self, people: Cast) -> None:
        first = make.dispatched(people.key, make.REFUND)
        other = make.variant(people.key, first, {**make.ARGS[make.REFUND], "amount": 999})
        approve = action(page_of(people.approver, other), DecisionKind.APPROVE)
        assert not approve.enabled
        assert "must be settled first" in approve.why_disabled[0]

    def test_a_closed_question_offers_nothing_but_reading(self, people: Cast) -> None:
        attempt = make.for_a_person(people.key)
        decisions.confirm_did_not_happen(people.operator, make.item_of(attempt).pk, why="no")
        page = page_of(people.approver, attempt)
        assert not any(a.enabled for a in page.actions if a.kind is not DecisionKind.NOTE)

    def test_whom_it_can_be_given_to(self, people: Cast) -> None:
        attempt = make.unknown(people.key)
        assert page_of(people.viewer, attempt).assignees == ()
        own = {choice.value for choice in page_of(people.operator, attempt).assignees}
        assert own == {"operator", "#Review desk"}
        every = {choice.value for choice in page_of(people.admin, attempt).assignees}
        assert {"operator", "approver", "#Review desk"} <= every
        assert not every & {"viewer", "auditor", "stranger", "inactive"}


def test_separate_duties_are_the_ledgers(people: Cast) -> None:
    """The page's reading of who is barred agrees with the one the ledger votes by."""
    held = make.item_of(make.held(people.key, requested_by=people.approver))
    decisions.relink_arguments(people.second_approver, held.pk, why="typo", typed='{"version": "2"}')
    corrected = ReviewItem.objects.get(closed_at=None).attempt
    now = database_clock()
    barred = {user.pk for user in User.objects.all() if conflicts_of(corrected, user.pk, now=now)}
    assert set(conflicts(corrected, now=now)) == barred
    assert barred == {people.owner.pk, people.approver.pk, people.second_approver.pk, people.admin.pk}


def test_queries_do_not_grow_with_what_is_shown(people: Cast) -> None:
    attempt = make.unknown(people.key)
    few = queries_of(people.approver, attempt)
    for _ in range(6):
        make.looked_up(attempt, LookedUpKind.UNAVAILABLE)
        ownership.note(people.operator, make.item_of(attempt).pk, why="still asking")
        make.key(people.agent)
        make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, f"t.{_}": {"effect": "read"}})
    make.variant(people.key, attempt, {"to": "eve@example.org"})
    assert queries_of(people.approver, attempt) <= min(few + 1, 18)


def test_nothing_is_written_on_what_was_remembered(db: None) -> None:
    with one_reading(), pytest.raises(NotInTransaction):
        durable(lambda: None)


def queries_of(user: User, attempt: Attempt) -> int:
    item_id = ReviewItem.objects.filter(attempt=attempt).latest("pk").pk
    with CaptureQueriesContext(connection) as queries:
        item_page(user, item_id)
    return len(queries)
