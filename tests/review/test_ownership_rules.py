"""Rules of ownership: who opens with what, what a dry run says, and what applying them moves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from ledger.models import Attempt, ReviewItem, User
from ledger.rules.looked_up import LookedUpKind
from ledger.rules.vocabulary import EventKind, ReviewReason
from review import ownership, ownership_rules
from review.door import NotPermitted, NotVisible
from review.models import OwnershipVersion
from review.ownership_rules import Applied, BadRules, RulesChanged, TypedRule
from review.queries import Tab
from review.queries.ownership import ownership_page
from review.queries.ownership_moves import dry_run, moves_by_rules
from review.reach import Reach
from tests.review.pages import seen
from tests.review.teams import in_force, team
from tests.support import make
from tests.support.cast import Cast

ALL_TO_OPERATOR = TypedRule("*", owner="operator")


def owner_of(attempt: Attempt) -> tuple[str, str | None]:
    item = make.item_of(attempt)
    return item.owner_group.name, item.owner.get_username() if item.owner else None


def apply(people: Cast, reach: Reach = Reach.ALL, *, by: User | None = None) -> Applied:
    return ownership_rules.apply_rules(by or people.admin, people.tenant.slug, reach=reach, why="as agreed")


class TestOpening:
    def test_a_question_opens_with_whom_the_first_rule_names(self, people: Cast) -> None:
        team(people, "Payments", people.operator)
        in_force(
            people,
            TypedRule("refund.*", effect="payment", owner="#Payments"),
            TypedRule("*", reason="unknown", owner="approver"),
            ALL_TO_OPERATOR,
        )
        assert owner_of(make.unknown(people.key, make.REFUND)) == ("Payments", None)
        assert owner_of(make.unknown(people.key)) == ("Review desk", "approver")
        held = make.held(people.key)
        assert owner_of(held) == ("Review desk", "operator")
        event = held.operation.events.get(kind=EventKind.ASSIGNED)
        assert (event.data["owner"], event.data["rule"], event.data["by"]) == ("operator", 3, "rules")

    def test_what_no_rule_matches_is_the_first_teams(self, people: Cast) -> None:
        in_force(people, TypedRule("refund.*", owner="operator"))
        attempt = make.unknown(people.key)
        assert owner_of(attempt) == ("Review desk", None)
        assert not attempt.operation.events.filter(kind=EventKind.ASSIGNED).exists()

    def test_nothing_opens_with_somebody_who_cannot_act(self, people: Cast) -> None:
        nobody = team(people, "Payments", people.operator)
        in_force(
            people,
            TypedRule("refund.*", owner="#Payments"),
            TypedRule("*", owner="second-operator"),
        )
        nobody.members.clear()
        User.objects.filter(pk=people.second_operator.pk).update(is_active=False)
        assert owner_of(make.unknown(people.key, make.REFUND)) == ("Review desk", None)
        assert owner_of(make.unknown(people.key)) == ("Review desk", None)
        first, second = ownership_page(people.viewer, "acme").rules
        assert (first.able, second.able) == (False, False)

    def test_rules_of_one_tenant_say_nothing_in_another(self, people: Cast) -> None:
        key = make.key(make.agent(people.other_tenant, people.stranger))
        in_force(people, ALL_TO_OPERATOR)
        assert owner_of(make.unknown(key)) == ("Review desk", None)


class TestAnotherReason:
    def test_is_another_rules(self, people: Cast) -> None:
        in_force(people, TypedRule("*", reason="no_lookup", owner="operator"))
        attempt = make.unknown(people.key, make.TICKET)
        assert owner_of(attempt) == ("Review desk", None)
        attempt = make.looked_up(attempt, LookedUpKind.NO_LOOKUP)
        assert make.item_of(attempt).reason == ReviewReason.NO_LOOKUP
        assert owner_of(attempt) == ("Review desk", "operator")

    def test_takes_nothing_from_whom_a_person_gave_it_to_or_who_holds_it(self, people: Cast) -> None:
        in_force(people, TypedRule("*", reason="no_lookup", owner="operator"))
        given, held = (make.unknown(people.key, make.TICKET) for _ in range(2))
        ownership.assign(people.admin, make.item_of(given).pk, to="approver", why="yours")
        ownership.claim(people.approver, make.item_of(held).pk)
        for attempt in (given, held):
            make.looked_up(attempt, LookedUpKind.NO_LOOKUP)
        assert owner_of(given) == ("Review desk", "approver")
        assert owner_of(held) == ("Review desk", None)


class TestDryRun:
    def test_it_says_who_would_lose_what_to_whom_and_moves_nothing(self, people: Cast) -> None:
        team(people, "Payments", people.operator)
        free, given, theirs = (make.item_of(make.unknown(people.key, make.REFUND)) for _ in range(3))
        make.unknown(people.key)
        ownership.assign(people.admin, given.pk, to="approver", why="yours")
        ownership.assign(people.admin, theirs.pk, to="#Payments", why="yours")
        rules = [TypedRule("refund.*", owner="#Payments")]
        tried = ownership_rules.try_rules(people.admin, "acme", rules)
        assert (tried.open, tried.matched, tried.unmatched) == (4, (3,), 1)
        assert (tried.every, tried.unowned) == (2, 1)
        assert [(c.before, c.after, c.every, c.unowned) for c in tried.counts] == [
            ("#Review desk", "#Payments", 1, 1),
            ("approver", "#Payments", 1, 0),
        ]
        assert [(row.item_id, row.rule) for row in tried.listed] == [(free.pk, 1), (given.pk, 1)]
        assert tried.listed[0].sentence == "Refund 125 EUR to cus_7"
        assert not OwnershipVersion.objects.exists()
        assert owner_of(free.attempt) == ("Review desk", None)

    def test_it_sees_nothing_of_another_tenant(self, people: Cast) -> None:
        make.unknown(make.key(make.agent(people.other_tenant, people.stranger)))
        assert ownership_rules.try_rules(people.admin, "acme", [ALL_TO_OPERATOR]).open == 0

    def test_queries_do_not_grow_with_items(self, people: Cast) -> None:
        in_force(people, ALL_TO_OPERATOR)

        def queries() -> int:
            with CaptureQueriesContext(connection) as captured:
                dry_run(people.tenant.pk, [])
                ownership_page(people.admin, "acme")
            return len(captured)

        make.unknown(people.key)
        few = queries()
        for _ in range(4):
            make.unknown(people.key)
        assert queries() == few


class TestSaving:
    def test_each_save_is_a_version_with_who_when_and_why(self, people: Cast) -> None:
        assert in_force(people, ALL_TO_OPERATOR) == 1
        assert in_force(people, TypedRule("refund.*", owner="approver"), based_on=1) == 2
        page = ownership_page(people.auditor, "acme")
        assert [rule.owner for rule in page.rules] == ["approver"]
        assert [(v.number, v.saved_by, v.why) for v in page.versions] == [
            (2, "admin", "as agreed"),
            (1, "admin", "as agreed"),
        ]
        assert [rule.owner for rule in ownership_page(people.auditor, "acme", version=1).rules] == [
            "operator"
        ]
        with pytest.raises(NotVisible):
            ownership_page(people.auditor, "acme", version=3)

    def test_who_was_not_first_changes_nothing(self, people: Cast) -> None:
        in_force(people, ALL_TO_OPERATOR)
        with pytest.raises(RulesChanged):
            in_force(people, TypedRule("*", owner="approver"), based_on=0)
        assert OwnershipVersion.objects.get().version == 1

    @pytest.mark.parametrize(
        ("rule", "field"),
        [
            (TypedRule("", owner="operator"), "tool"),
            (TypedRule("a\u202e", owner="operator"), "tool"),
            (TypedRule("x" * 201, owner="operator"), "tool"),
            (TypedRule("*", reason="bored", owner="operator"), "reason"),
            (TypedRule("*", effect="magic", owner="operator"), "effect"),
            (TypedRule("*"), "owner"),
            (TypedRule("*", owner="stranger"), "owner"),
            (TypedRule("*", owner="inactive"), "owner"),
            (TypedRule("*", owner="viewer"), "owner"),
            (TypedRule("*", owner="#Nowhere"), "owner"),
        ],
    )
    def test_what_cannot_be_a_rule_is_refused_by_its_field(
        self, people: Cast, rule: TypedRule, field: str
    ) -> None:
        with pytest.raises(BadRules) as refused:
            in_force(people, ALL_TO_OPERATOR, rule)
        assert [(place, name) for place, name, _ in refused.value.faults] == [(1, field)]
        assert not OwnershipVersion.objects.exists()

    def test_more_than_anybody_can_read_is_refused(self, people: Cast) -> None:
        with pytest.raises(BadRules, match="At most 50"):
            in_force(people, *[ALL_TO_OPERATOR] * 51)

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE review_ownershipversion SET why = 'x'",
            "DELETE FROM review_ownershipentry",
            "UPDATE review_ownershipentry SET tool_glob = '*'",
            (
                "INSERT INTO review_ownershipentry (tenant_id, version_id, place, tool_glob, reason, effect) "
                "SELECT tenant_id, id, 9, '*', '', '' FROM review_ownershipversion"
            ),
            (
                "INSERT INTO review_ownershipentry (tenant_id, version_id, place, tool_glob, reason, effect, "
                "team_id) SELECT v.tenant_id, v.id, 9, '*', '', '', g.id FROM review_ownershipversion v "
                "JOIN ledger_reviewgroup g ON g.tenant_id <> v.tenant_id"
            ),
        ],
    )
    def test_the_database_keeps_what_was_saved(self, people: Cast, statement: str) -> None:
        in_force(people, TypedRule("refund.*", owner="operator"))
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)


class TestApplying:
    @pytest.fixture
    def items(self, people: Cast) -> Sequence[ReviewItem]:
        """Nobody's, somebody's, and already theirs."""
        free, given, theirs = (make.item_of(make.unknown(people.key)) for _ in range(3))
        ownership.assign(people.admin, given.pk, to="approver", why="yours")
        ownership.assign(people.admin, theirs.pk, to="operator", why="yours")
        in_force(people, ALL_TO_OPERATOR)
        return free, given, theirs

    def test_to_new_ones_moves_nothing(self, people: Cast, items: Sequence[ReviewItem]) -> None:
        assert apply(people, Reach.NEW) == Applied((), 0)
        assert owner_of(items[0].attempt) == ("Review desk", None)

    def test_to_unowned_ones_takes_nothing_from_anybody(
        self, people: Cast, items: Sequence[ReviewItem]
    ) -> None:
        applied = apply(people, Reach.UNOWNED)
        assert [(row.item_id, refused) for row, refused in applied.told] == [(items[0].pk, "")]
        assert owner_of(items[0].attempt) == ("Review desk", "operator")
        assert owner_of(items[1].attempt) == ("Review desk", "approver")
        assert seen(people.operator, Tab.UNOWNED) == []

    def test_to_all_moves_each_once_and_says_so_in_its_history(
        self, people: Cast, items: Sequence[ReviewItem]
    ) -> None:
        assert {row.item_id for row, _ in apply(people).told} == {items[0].pk, items[1].pk}
        assert all(owner_of(item.attempt) == ("Review desk", "operator") for item in items)
        event = items[1].operation.events.filter(kind=EventKind.ASSIGNED).latest("sequence")
        assert (event.actor, event.data["why"], event.data["rule"]) == ("admin", "as agreed", 1)
        assert apply(people) == Applied((), 0)

    def test_each_is_judged_alone(
        self, people: Cast, items: Sequence[ReviewItem], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def and_then_somebody_was_first(tenant_id: int) -> object:
            found = moves_by_rules(tenant_id)
            ownership.assign(people.admin, items[0].pk, to="second-operator", why="I need it")
            return found

        monkeypatch.setattr(ownership_rules, "moves_by_rules", and_then_somebody_was_first)
        applied = apply(people)
        assert {row.item_id: bool(refused) for row, refused in applied.told} == {
            items[0].pk: True,
            items[1].pk: False,
        }
        assert applied.moved == 1
        assert owner_of(items[0].attempt) == ("Review desk", "second-operator")

    @pytest.mark.usefixtures("items")
    def test_so_many_at_once_and_the_rest_when_pressed_again(
        self, people: Cast, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ownership_rules, "MOST_AT_ONCE", 1)
        assert (len(apply(people).told), apply(people).left) == (1, 0)

    def test_a_snooze_and_a_claim_stay(self, people: Cast, items: Sequence[ReviewItem]) -> None:
        ownership.claim(people.approver, items[0].pk)
        ownership.snooze(people.approver, items[0].pk, until=timedelta(hours=1), why="later")
        apply(people)
        item = make.item_of(items[0].attempt)
        assert (item.owner, item.claimed_by) == (people.operator, people.approver)
        assert item.snoozed_until is not None


def test_who_may_do_what(people: Cast) -> None:
    make.unknown(people.key)
    asks = (
        lambda user: ownership_rules.try_rules(user, "acme", [ALL_TO_OPERATOR]),
        lambda user: ownership_rules.save_rules(
            user, "acme", [ALL_TO_OPERATOR], based_on=0, reach=Reach.NEW, why="mine"
        ),
        lambda user: ownership_rules.apply_rules(user, "acme", reach=Reach.ALL, why="mine"),
    )
    for ask in asks:
        for user in people.blind:
            with pytest.raises(NotVisible):
                ask(user)
        for user in (people.viewer, people.operator, people.approver, people.auditor):
            with pytest.raises(NotPermitted, match="administer in Acme"):
                ask(user)
    for user in people.blind:
        with pytest.raises(NotVisible):
            ownership_page(user, "acme")
    assert not OwnershipVersion.objects.exists()
