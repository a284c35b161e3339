"""The queue: whose items are on which tab, in what order, page by page, with a constant number of queries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger.models import Attempt, Pulse, ReviewGroup, ReviewItem, User
from ledger.queries.invariants.scope import Scope
from ledger.rules.looked_up import LookedUpKind
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind, Effect, ReviewReason
from ledger.transactions import database_clock
from review import decisions, ownership
from review.models import TenantPermission
from review.queries import BadFilter, QueueFilters, QueuePage, Tab, VotesSoFar, queue
from review.queries.changes import Changes, changes_since
from review.queries.invariants import page_counts_are_query_counts
from review.queries.queue import SWEEP
from review.roles import Role, grant_role
from tests.review.pages import seen
from tests.support import make
from tests.support.cast import Cast

# The package exports a function under the name of the module.
queue_module = import_module("review.queries.queue")


class TestWall:
    def test_each_sees_the_items_of_their_tenants(self, people: Cast) -> None:
        item = make.item_of(make.unknown(people.key))
        for user in (people.viewer, people.operator, people.admin, people.auditor):
            assert seen(user) == [item.pk]

    def test_others_see_an_empty_queue(self, people: Cast) -> None:
        make.unknown(people.key)
        for user in people.blind:
            page = queue(user, QueueFilters())
            assert page.rows == ()
            assert set(page.counts.values()) <= {0}
            assert page.tools == ()

    def test_naming_a_foreign_tenant_shows_nothing_of_it(self, people: Cast) -> None:
        make.unknown(people.key)
        assert seen(people.stranger, tenants=("acme",)) == []


class TestTabs:
    def test_mine_is_owned_or_claimed(self, people: Cast) -> None:
        owned, claimed, _other = (make.item_of(make.unknown(people.key)) for _ in range(3))
        ownership.assign(people.admin, owned.pk, to="operator", why="yours")
        ownership.claim(people.operator, claimed.pk)
        assert set(seen(people.operator, Tab.MINE)) == {owned.pk, claimed.pk}
        make.at(claimed, claim_until=database_clock() - timedelta(seconds=1))
        assert seen(people.operator, Tab.MINE) == [owned.pk]

    def test_my_teams_are_the_groups_i_am_in(self, people: Cast) -> None:
        ours, first = (make.item_of(make.unknown(people.key)) for _ in range(2))
        team = ReviewGroup.objects.create(tenant=people.tenant, name="Payments")
        team.members.add(people.viewer)
        ownership.assign(people.admin, ours.pk, to="#Payments", why="yours")
        assert seen(people.viewer, Tab.TEAMS) == [ours.pk]
        assert seen(people.operator, Tab.TEAMS) == [first.pk]

    def test_unowned_is_what_only_the_first_group_owns(self, people: Cast) -> None:
        left, given = (make.item_of(make.unknown(people.key)) for _ in range(2))
        ownership.assign(people.admin, given.pk, to="operator", why="yours")
        assert seen(people.operator, Tab.UNOWNED) == [left.pk]
        assert seen(people.operator, owner="none") == [left.pk]

    def test_nobody_in_particular_owns_what_is_of_somebody_gone(self, people: Cast) -> None:
        theirs, of_nobody = (make.item_of(make.unknown(people.key)) for _ in range(2))
        team = ReviewGroup.objects.create(tenant=people.tenant, name="Payments")
        ownership.assign(people.admin, theirs.pk, to="operator", why="yours")
        ownership.assign(people.admin, of_nobody.pk, to="#Payments", why="yours")
        assert seen(people.approver, Tab.UNOWNED) == [of_nobody.pk]
        team.members.add(people.approver)
        assert seen(people.approver, Tab.UNOWNED) == []
        User.objects.filter(pk=people.operator.pk).update(is_active=False)
        assert seen(people.approver, Tab.UNOWNED) == [theirs.pk]
        TenantPermission.objects.filter(user=people.approver, permission__codename="decide_work").delete()
        assert set(seen(people.approver, Tab.UNOWNED)) == {theirs.pk, of_nobody.pk}
        row = next(
            row
            for row in queue(people.approver, QueueFilters(tab=Tab.UNOWNED)).rows
            if row.item_id == theirs.pk
        )
        assert not row.owner.person_is_active
        assert list(page_counts_are_query_counts(Scope())) == []

    def test_snoozed_is_on_no_other_list_until_it_wakes_by_itself(self, people: Cast) -> None:
        item = make.item_of(make.looked_up(make.unknown(people.key), LookedUpKind.UNAVAILABLE))
        ownership.claim(people.operator, item.pk)
        active = (Tab.MINE, Tab.TEAMS, Tab.UNOWNED, Tab.ALL, Tab.BACKING_OFF)
        assert all(seen(people.operator, tab) == [item.pk] for tab in active)
        ownership.snooze(people.operator, item.pk, until=timedelta(hours=1), why="they open at nine")
        assert all(seen(people.operator, tab) == [] for tab in active)
        make.at(item, due_at=database_clock() - timedelta(seconds=1))
        (row,) = queue(people.operator, QueueFilters(tab=Tab.SNOOZED)).rows
        assert row.overdue
        assert row.snoozed_until is not None
        make.at(item, snoozed_until=database_clock() - timedelta(seconds=1))
        assert all(seen(people.operator, tab) == [item.pk] for tab in active)
        assert seen(people.operator, Tab.SNOOZED) == []

    def test_what_woke_is_told_to_who_reads_the_list(self, people: Cast) -> None:
        item = make.item_of(make.unknown(people.key))
        ownership.snooze(people.operator, item.pk, until=timedelta(hours=1), why="they open at nine")
        read_at = queue(people.operator, QueueFilters()).as_of
        filters, away = QueueFilters(), QueueFilters(tab=Tab.SNOOZED)
        assert changes_since(people.operator, filters, read_at) == Changes(0, 0)
        assert changes_since(people.operator, away, read_at) == Changes(0, 0)
        make.at(item, snoozed_until=database_clock())
        assert changes_since(people.operator, filters, read_at) == Changes(1, 0)
        assert changes_since(people.operator, away, read_at) == Changes(0, 0)

    def test_backing_off_is_unknown_with_failing_look_ups(self, people: Cast) -> None:
        failing, _fine = (make.unknown(people.key) for _ in range(2))
        make.looked_up(failing, LookedUpKind.UNAVAILABLE)
        assert seen(people.operator, Tab.BACKING_OFF) == [make.item_of(failing).pk]

    def test_decided_is_what_a_person_closed_in_the_last_day(self, people: Cast) -> None:
        decided, found, old = (make.item_of(make.for_a_person(people.key)) for _ in range(3))
        decisions.confirm_did_not_happen(people.operator, decided.pk, why="checked")
        ownership.note(people.operator, found.pk, why="a note decides nothing")
        make.reported(people.key, found.attempt, "succeeded", result_ref="re_1")
        decisions.confirm_did_not_happen(people.operator, old.pk, why="checked")
        (first, second) = queue(people.viewer, QueueFilters(tab=Tab.DECIDED)).rows
        assert (first.item_id, second.item_id) == (old.pk, decided.pk)
        assert second.closing is not None
        assert second.closing.words == "confirmed not to have happened by operator"
        assert (second.closing.decision, second.closing.by) == (DecisionKind.CONFIRM_DID_NOT, "operator")

    def test_approved_work_stays_listed_until_it_is_sent(self, people: Cast) -> None:
        held, sent = make.held(people.key), make.for_a_person(people.key)
        for attempt in (held, sent):
            decisions.approve(people.approver, make.item_of(attempt).pk, why="go")
        waiting = queue(people.viewer, QueueFilters(tab=Tab.WAITING))
        assert {row.attempt_id for row in waiting.rows} == {held.pk, sent.pk}
        assert all(row.approval_until is not None for row in waiting.rows)
        assert all("leave" in row.next_step.what for row in waiting.rows)
        assert seen(people.viewer) == [make.item_of(sent).pk]
        make.send(people.key, make.fresh(held))
        make.send(people.key, make.fresh(sent))
        assert seen(people.viewer, Tab.WAITING) == []

    def test_counts_are_what_the_tabs_list(self, people: Cast) -> None:
        items = [make.item_of(make.for_a_person(people.key)) for _ in range(5)]
        make.looked_up(make.unknown(people.key), LookedUpKind.UNAVAILABLE)
        ownership.claim(people.approver, items[0].pk)
        ownership.assign(people.admin, items[1].pk, to="operator", why="yours")
        ownership.snooze(people.operator, items[4].pk, until=timedelta(hours=1), why="later")
        decisions.approve(people.approver, items[2].pk, why="go")
        decisions.confirm_did_not_happen(people.approver, items[3].pk, why="checked")
        for user in (people.approver, people.viewer):
            for filters in ({}, {"tools": (make.TICKET,)}, {"owner": "operator"}):
                for tab in Tab:
                    page = queue(user, QueueFilters(tab=tab, **filters))
                    assert page.counts[tab] == len(page.rows), (user, filters, tab)
        assert list(page_counts_are_query_counts(Scope())) == []

    def test_a_round_of_votes_says_how_far_it_is(self, people: Cast) -> None:
        two = {**make.TOOLS[make.DEPLOY], "approvals": 2}
        make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.DEPLOY: two})
        item, _other = make.item_of(make.held(people.key)), make.held(people.key)
        decisions.approve(people.approver, item.pk, why="go")
        votes = {row.item_id: row.votes for row in queue(people.viewer, QueueFilters()).rows}
        assert [found for found in votes.values() if found] == [VotesSoFar(1, 2)]
        assert votes[item.pk] == VotesSoFar(1, 2)
        three = {**make.TOOLS, make.DEPLOY: {**two, "approvals": 3}}
        make.policy(people.tenant, by=people.admin, tools=three)
        assert not any(row.votes for row in queue(people.viewer, QueueFilters()).rows)


class TestFilters:
    @pytest.fixture
    def mail(self, people: Cast) -> ReviewItem:
        return make.item_of(make.unknown(people.key, operation_key="invoice:7:send"))

    @pytest.fixture
    def ticket(self, people: Cast) -> ReviewItem:
        return make.item_of(make.for_a_person(people.key, operation_key="ticket:printer"))

    @pytest.mark.parametrize(
        ("filters", "finds"),
        [
            ({"states": (State.UNKNOWN,)}, "mail"),
            ({"states": (State.UNKNOWN, State.MANUAL_REVIEW)}, "both"),
            ({"reasons": (ReviewReason.NO_LOOKUP,)}, "ticket"),
            ({"tools": (make.MAIL,)}, "mail"),
            ({"tenants": ("acme",)}, "both"),
            ({"tenants": ("globex",)}, "none"),
            ({"owner": "me"}, "ticket"),
            ({"owner": "none"}, "mail"),
            ({"owner": "operator"}, "ticket"),
            ({"owner": "#Review desk"}, "both"),
            ({"owner": "#Nowhere"}, "none"),
            ({"text": "INVOICE:7"}, "mail"),
            ({"text": "on fire"}, "ticket"),
            ({"text": "100%"}, "none"),
            ({"text": "\x00"}, "both"),
            ({"text": "' OR 1=1 --"}, "none"),
        ],
    )
    def test_each_narrows(
        self, people: Cast, mail: ReviewItem, ticket: ReviewItem, filters: dict[str, Any], finds: str
    ) -> None:
        ownership.assign(people.admin, ticket.pk, to="operator", why="yours")
        expected = {"mail": {mail.pk}, "ticket": {ticket.pk}, "both": {mail.pk, ticket.pk}, "none": set()}
        assert set(seen(people.operator, **filters)) == expected[finds]


class TestOrder:
    def test_overdue_then_risk_then_closing_window_then_oldest(self, people: Cast) -> None:
        now = database_clock()
        oldest, older_mail, mail, refund, late = (
            make.item_of(attempt)
            for attempt in (
                make.for_a_person(people.key),
                make.unknown(people.key),
                make.unknown(people.key),
                make.unknown(people.key, make.REFUND),
                make.for_a_person(people.key),
            )
        )
        make.at(late, due_at=now - timedelta(minutes=1))
        assert seen(people.viewer) == [late.pk, refund.pk, older_mail.pk, mail.pk, oldest.pk]

    def test_pages_continue_where_the_last_one_ended(
        self, people: Cast, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queue_module, "PAGE_SIZE", 2)
        for tool in (make.MAIL, make.REFUND, make.MAIL, make.REFUND, make.MAIL):
            make.unknown(people.key, tool)
        pages = list(paged(people.viewer, Tab.ALL))
        rows = [row for page in pages for row in page.rows]
        assert [len(page.rows) for page in pages] == [2, 2, 1]
        assert len({row.item_id for row in rows}) == 5
        assert [row.effect for row in rows] == [Effect.PAYMENT] * 2 + [Effect.MESSAGE] * 3

    def test_an_item_that_becomes_overdue_between_pages_is_neither_lost_nor_shown_twice(
        self, people: Cast, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queue_module, "PAGE_SIZE", 2)
        items = [make.item_of(make.for_a_person(people.key)) for _ in range(4)]
        first = queue(people.viewer, QueueFilters())
        make.at(items[3], due_at=database_clock())
        second = queue(people.viewer, QueueFilters(cursor=first.next_cursor or ""))
        assert [row.item_id for row in (*first.rows, *second.rows)] == [item.pk for item in items]

    def test_decided_pages_newest_first(self, people: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(queue_module, "PAGE_SIZE", 2)
        items = [make.item_of(make.for_a_person(people.key)) for _ in range(3)]
        for item in items:
            decisions.confirm_did_not_happen(people.operator, item.pk, why="checked")
        rows = [row.item_id for page in paged(people.viewer, Tab.DECIDED) for row in page.rows]
        assert rows == [item.pk for item in reversed(items)]

    @pytest.mark.parametrize("cursor", ["x", "WyJhbGwiXQ", "\x00", "a:b:c"])
    def test_a_cursor_that_is_not_ours_is_refused(self, people: Cast, cursor: str) -> None:
        with pytest.raises(BadFilter) as refused:
            queue(people.viewer, QueueFilters(cursor=cursor))
        assert refused.value.field == "cursor"

    def test_a_cursor_of_another_tab_is_refused(self, people: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(queue_module, "PAGE_SIZE", 1)
        for _ in range(2):
            make.unknown(people.key)
        cursor = queue(people.viewer, QueueFilters()).next_cursor or ""
        with pytest.raises(BadFilter):
            queue(people.viewer, QueueFilters(tab=Tab.UNOWNED, cursor=cursor))


class TestRow:
    def test_it_says_what_is_known(self, people: Cast) -> None:
        attempt = make.unknown(people.key, make.REFUND, operation_key="refund:7")
        ownership.claim(people.operator, make.item_of(attempt).pk)
        (row,) = queue(people.viewer, QueueFilters()).rows
        assert (row.sentence, row.operation_key) == ("Refund 125 EUR to cus_7", "refund:7")
        assert (row.state, row.reason, row.high_risk) == (State.UNKNOWN, ReviewReason.UNKNOWN, True)
        assert row.hash.full == attempt.args_hash
        assert row.hash.short == f"{attempt.args_hash[10:18]}…{attempt.args_hash[-8:]}"
        assert row.claim is not None
        assert (row.claim.by, row.claim.is_mine) == ("operator", False)
        assert (row.owner.group, row.owner.person) == ("Review desk", None)
        assert row.next_step.at is not None
        assert row.key_window.ends_at == attempt.key_first_sent_at + timedelta(hours=1)  # type: ignore[operator]

    def test_every_open_row_says_what_happens_next_and_when(self, people: Cast) -> None:
        for attempt in (make.unknown(people.key), make.for_a_person(people.key), make.held(people.key)):
            assert isinstance(attempt, Attempt)
        for row in queue(people.viewer, QueueFilters()).rows:
            assert row.next_step.what
            assert row.next_step.at is not None
            assert row.next_step.if_nobody_acts
        waiting = [row.next_step.what for row in queue(people.viewer, QueueFilters()).rows[-1:]]
        assert waiting == ["None: waits for a person; overdue"]

    def test_a_hash_only_intent_says_so(self, people: Cast) -> None:
        make.unknown(people.key, hash_only=True)
        (row,) = queue(people.viewer, QueueFilters()).rows
        assert "hash only" in row.sentence

    def test_the_last_sweep_is_told(self, people: Cast) -> None:
        assert queue(people.viewer, QueueFilters()).last_sweep_at is None
        at = database_clock()
        Pulse.objects.create(name=SWEEP, at=at)
        assert queue(people.viewer, QueueFilters()).last_sweep_at == at


@pytest.mark.parametrize("tab", Tab)
def test_queries_do_not_grow_with_rows(people: Cast, tab: Tab) -> None:
    fill(people)
    few = queries_of(lambda: queue(people.operator, QueueFilters(tab=tab)))
    for _ in range(4):
        fill(people)
    grant_role(people.operator, people.other_tenant, Role.OPERATOR)
    many = queries_of(lambda: queue(people.operator, QueueFilters(tab=tab)))
    assert many == few
    assert many <= 10


def fill(people: Cast) -> None:
    """One item for every tab."""
    mine = make.item_of(make.unknown(people.key))
    ownership.claim(people.operator, mine.pk)
    make.looked_up(make.unknown(people.key, make.REFUND), LookedUpKind.UNAVAILABLE)
    decisions.approve(people.approver, make.item_of(make.held(people.key)).pk, why="go")
    closed = make.item_of(make.for_a_person(people.key))
    decisions.confirm_did_not_happen(people.operator, closed.pk, why="checked")
    away = make.item_of(make.unknown(people.key))
    ownership.snooze(people.operator, away.pk, until=timedelta(hours=1), why="they open at nine")


def queries_of(ask: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as queries:
        ask()
    return len(queries)


def paged(user: User, tab: Tab) -> list[QueuePage]:
    pages, cursor = [], ""
    while True:
        page = queue(user, QueueFilters(tab=tab, cursor=cursor))
        pages.append(page)
        if page.next_cursor is None:
            return pages
        cursor = page.next_cursor
