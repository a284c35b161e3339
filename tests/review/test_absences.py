"""Whoever is away gets nothing by rules, and keeps what is theirs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from ledger.models import Attempt, User
from ledger.transactions import database_clock
from review import absences, ownership, ownership_rules
from review.absences import AbsenceRefused
from review.door import NotPermitted, NotVisible
from review.models import Absence
from review.ownership_rules import TypedRule
from review.queries import QueueFilters, Tab, item_page, queue
from review.queries.ownership import ownership_page
from review.queries.ownership_moves import moves_by_rules
from review.reach import Reach
from tests.review.teams import in_force
from tests.support import make
from tests.support.cast import Cast

pytestmark = pytest.mark.django_db

WHY = "on holiday"


def soon(**span: float) -> datetime:
    return database_clock() + timedelta(**span)


def away(people: Cast, by: User, who: User | None = None, *, until: datetime | None = None) -> None:
    absences.mark_away(by, "acme", (who or by).pk, until=until or soon(days=3), why=WHY)


def back(by: User, who: User | None = None) -> None:
    absences.mark_back(by, "acme", (who or by).pk, why=WHY)


def owner_of(attempt: Attempt) -> str | None:
    owner = make.item_of(attempt).owner
    return owner.get_username() if owner else None


@pytest.fixture
def to_operator(people: Cast) -> Cast:
    in_force(people, TypedRule("*", owner="operator"))
    return people


@pytest.mark.parametrize("by", ["operator", "admin"])
def test_rules_give_nothing_to_whom_is_away_until_they_are_back(to_operator: Cast, by: str) -> None:
    said_by = getattr(to_operator, by)
    away(to_operator, said_by, to_operator.operator)
    assert owner_of(make.unknown(to_operator.key)) is None
    (rule,) = ownership_page(to_operator.viewer, "acme").rules
    assert (rule.able, rule.away is not None) == (False, True)
    back(said_by, to_operator.operator)
    assert owner_of(make.unknown(to_operator.key)) == "operator"
    lines = list(Absence.objects.order_by("pk").values_list("by__username", "person__username", "why"))
    assert lines == [(by, "operator", WHY)] * 2


def test_who_reads_an_item_sees_that_its_owner_is_away(to_operator: Cast) -> None:
    item = make.item_of(make.unknown(to_operator.key))

    def seen() -> set[datetime | None]:
        (row,) = queue(to_operator.viewer, QueueFilters(tab=Tab.ALL)).rows
        return {row.owner.away_until, item_page(to_operator.viewer, item.pk).owner.away_until}

    assert seen() == {None}
    until = soon(days=2)
    away(to_operator, to_operator.operator, until=until)
    assert seen() == {until}
    now, operator = database_clock(), to_operator.operator
    Absence.objects.create(tenant=to_operator.tenant, person=operator, until=now, by=operator, at=now)
    assert seen() == {None}
    away(to_operator, to_operator.operator, until=until)
    back(to_operator.operator, to_operator.operator)
    assert seen() == {None}


def test_an_absence_ends_by_itself(to_operator: Cast) -> None:
    now = database_clock()
    operator = to_operator.operator
    Absence.objects.create(tenant=to_operator.tenant, person=operator, until=now, by=operator, at=now)
    assert owner_of(make.unknown(to_operator.key)) == "operator"


def test_the_newest_word_counts(to_operator: Cast) -> None:
    away(to_operator, to_operator.operator, until=soon(days=9))
    away(to_operator, to_operator.operator, until=soon(days=2))
    ((who, away_now),) = absences.away_in(to_operator.tenant).items()
    assert (who, away_now.said_by, away_now.why) == (to_operator.operator.pk, "operator", WHY)
    assert away_now.until < soon(days=3)


def test_a_new_reason_asks_rules_that_know_who_is_away(people: Cast) -> None:
    in_force(people, TypedRule("*", reason="no_lookup", owner="operator"))
    away(people, people.operator)
    assert owner_of(make.for_a_person(people.key)) is None


def test_what_is_theirs_stays_theirs_and_applying_the_rules_frees_it(to_operator: Cast) -> None:
    theirs = make.unknown(to_operator.key)
    away(to_operator, to_operator.operator)
    assert owner_of(theirs) == "operator"
    (move,) = moves_by_rules(to_operator.tenant.pk)
    assert move.was[1] == to_operator.operator.pk
    ownership_rules.apply_rules(to_operator.admin, "acme", reach=Reach.ALL, why=WHY)
    assert owner_of(theirs) is None


def test_a_person_may_still_give_them_work(to_operator: Cast) -> None:
    away(to_operator, to_operator.operator)
    item = make.item_of(make.unknown(to_operator.key))
    ownership.assign(to_operator.admin, item.pk, to="operator", why="back tomorrow")
    item.refresh_from_db()
    assert item.owner == to_operator.operator


def test_who_is_away_in_one_tenant_is_not_in_another(people: Cast) -> None:
    away(people, people.operator)
    assert absences.away_in(people.other_tenant) == {}


@pytest.mark.parametrize("who", ["viewer", "second_operator", "approver", "auditor"])
def test_nobody_else_says_it_of_somebody(people: Cast, who: str) -> None:
    with pytest.raises(NotPermitted, match="administer"):
        away(people, getattr(people, who), people.operator)
    away(people, people.admin, people.operator)
    with pytest.raises(NotPermitted, match="administer"):
        back(getattr(people, who), people.operator)
    assert Absence.objects.count() == 1


def test_strangers_learn_nothing(people: Cast) -> None:
    for blind in people.blind:
        for who in (people.operator, blind):
            with pytest.raises(NotVisible):
                away(people, blind, who)
    with pytest.raises(NotVisible):
        away(people, people.admin, people.stranger)
    assert not Absence.objects.exists()


@pytest.mark.parametrize(
    ("press", "words"),
    [
        (lambda p: away(p, p.viewer), "decides no work"),
        (lambda p: away(p, p.admin, p.viewer), "decides no work"),
        (lambda p: away(p, p.operator, until=database_clock()), "in the future"),
        (lambda p: away(p, p.operator, until=soon(days=400)), "within 366 days"),
        (lambda p: back(p.operator), "is not away"),
    ],
)
def test_what_cannot_be_is_refused(people: Cast, press: Callable[[Cast], object], words: str) -> None:
    with pytest.raises(AbsenceRefused, match=words):
        press(people)
    assert not Absence.objects.exists()


def test_what_was_said_is_never_edited(people: Cast) -> None:
    away(people, people.operator)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE review_absence SET until = NULL")
