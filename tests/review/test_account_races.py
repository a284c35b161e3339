"""One link used twice at once, and used while it is replaced, each on a connection of its own."""

from __future__ import annotations

from functools import partial

import pytest

from ledger.models import AccessChange, User
from ledger.rules.vocabulary import AccessChangeKind
from review import access, accounts
from review.access import AccessRefused
from review.accounts import LinkOver, NewLink
from review.models import PasswordLink
from review.roles import Role
from tests.support import races
from tests.support.cast import Cast, cast, person

pytestmark = pytest.mark.django_db(transaction=True)

at_once = partial(races.at_once, may_raise=(AccessRefused, LinkOver))
ROUNDS = 4
PASSWORDS = ("the-first-long-phrase", "the-second-long-phrase")


@pytest.fixture
def people(transactional_db: None) -> Cast:
    return cast()


def test_a_link_that_is_used_twice_at_once_sets_one_password(people: Cast) -> None:
    for _ in range(ROUNDS):
        code = accounts.make_link(people.admin, "acme", people.operator.pk, why="forgot").code
        answers = at_once(*(partial(accounts.set_password, code, password) for password in PASSWORDS))
        assert [isinstance(answer, LinkOver) for answer in answers].count(True) == 1
        stored = User.objects.get(pk=people.operator.pk)
        won = PASSWORDS[[isinstance(answer, User) for answer in answers].index(True)]
        assert stored.check_password(won)
    assert AccessChange.objects.filter(kind=AccessChangeKind.PASSWORD_SET).count() == ROUNDS


def test_a_link_that_is_replaced_while_it_is_used_leaves_the_newer_one_good(people: Cast) -> None:
    for _ in range(ROUNDS):
        code = accounts.make_link(people.admin, "acme", people.operator.pk, why="forgot").code
        _, made = at_once(
            partial(accounts.set_password, code, PASSWORDS[0]),
            partial(accounts.make_link, people.admin, "acme", people.operator.pk, why="lost it"),
        )
        assert isinstance(made, NewLink)
        assert accounts.set_password(made.code, PASSWORDS[1]) == people.operator


def test_who_is_switched_off_meanwhile_keeps_no_link(people: Cast) -> None:
    for number in range(ROUNDS):
        leaver = person(f"leaver-{number}", people.tenant, Role.OPERATOR)
        at_once(
            partial(accounts.make_link, people.admin, "acme", leaver.pk, why="forgot"),
            partial(access.switch_off, people.admin, "acme", leaver.pk, why="left"),
        )
        assert not PasswordLink.objects.filter(person=leaver).exists()


def test_two_who_make_one_account_make_one(people: Cast) -> None:
    for number in range(ROUNDS):
        make = partial(
            accounts.make_account,
            username=f"nora-{number}",
            display_name="Nora",
            role=Role.VIEWER,
            why="joins",
        )
        answers = at_once(partial(make, people.admin, "acme"), partial(make, people.stranger, "globex"))
        assert [isinstance(answer, NewLink) for answer in answers].count(True) == 1
        assert User.objects.filter(username=f"nora-{number}").count() == 1
