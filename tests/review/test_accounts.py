"""Accounts are made by administrators, and their people alone know the password."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth import authenticate
from django.test import RequestFactory

from ledger.models import AccessChange, User
from ledger.rules.vocabulary import AccessChangeKind
from ledger.transactions import database_clock
from review import access, accounts
from review.access import AccessRefused
from review.accounts import LINK_LASTS, LinkOver, NewLink, PasswordRefused
from review.door import NotPermitted, NotVisible
from review.models import PasswordLink
from review.rights import rights_of
from review.roles import Role, grant_role, roles_of
from tests.support.cast import Cast, person

pytestmark = pytest.mark.django_db

WHY = "joins the desk"
PASSWORD = "a-long-and-private-phrase"


def account(
    people: Cast, by: User | None = None, *, username: str = "nora", name: str = "Nora Nil"
) -> NewLink:
    return accounts.make_account(
        by or people.admin, "acme", username=username, display_name=name, role=Role.OPERATOR, why=WHY
    )


def link(people: Cast, by: User | None = None, *, to: User | None = None) -> NewLink:
    return accounts.make_link(by or people.admin, "acme", (to or people.operator).pk, why=WHY)


def signs_in(username: str, password: str) -> bool:
    return authenticate(RequestFactory().post("/"), username=username, password=password) is not None


CHANGES: dict[str, Callable[[Cast, User], NewLink]] = {
    "make an account": account,
    "make a link": link,
}


def test_an_account_has_its_role_its_name_and_no_password(people: Cast) -> None:
    made = account(people)
    nora = User.objects.get(username="nora")
    assert (made.person_id, nora.get_full_name(), nora.has_usable_password()) == (nora.pk, "Nora Nil", False)
    assert roles_of(rights_of(nora, people.tenant)) == (Role.VIEWER, Role.OPERATOR)
    assert not rights_of(nora, people.other_tenant).view
    assert (nora.is_staff, nora.is_superuser) == (False, False)
    line = AccessChange.objects.get(by=people.admin)
    assert (line.kind, line.person, line.why) == (AccessChangeKind.ACCOUNT_MADE, nora, WHY)
    assert line.data["roles"] == ["operator"]


def test_only_the_hash_of_a_link_is_kept(people: Cast) -> None:
    made = account(people)
    kept = PasswordLink.objects.get(person=made.person_id)
    said = str([vars(line) for line in AccessChange.objects.all()])
    assert made.code not in str(vars(kept)) + said
    assert made.expires_at == kept.expires_at == kept.made_at + LINK_LASTS


@pytest.mark.parametrize("change", CHANGES)
def test_nobody_else_does(people: Cast, change: str) -> None:
    before = User.objects.count()
    for other in (people.viewer, people.operator, people.approver, people.auditor):
        with pytest.raises(NotPermitted) as refused:
            CHANGES[change](people, other)
        assert "administer" in refused.value.reason
    for blind in people.blind:
        with pytest.raises(NotVisible):
            CHANGES[change](people, blind)
    assert User.objects.count() == before
    assert not PasswordLink.objects.exists()
    assert not AccessChange.objects.exclude(by=None).exists()


def test_a_link_sets_the_password_once_and_it_is_on_record(people: Cast) -> None:
    made = account(people)
    assert accounts.set_password(made.code, PASSWORD).username == "nora"
    assert signs_in("nora", PASSWORD)
    with pytest.raises(LinkOver):
        accounts.set_password(made.code, "another-long-phrase")
    assert signs_in("nora", PASSWORD)
    line = AccessChange.objects.get(kind=AccessChangeKind.PASSWORD_SET)
    assert line.by is not None
    assert (line.by.username, line.person, line.tenant) == ("nora", line.by, people.tenant)
    assert line.data == {"link_made_by": "admin"}


def test_a_forgotten_password_stays_good_until_the_link_is_used(people: Cast) -> None:
    made = link(people)
    assert signs_in("operator", "operator-secret")
    accounts.set_password(made.code, PASSWORD)
    assert not signs_in("operator", "operator-secret")
    assert signs_in("operator", PASSWORD)


def test_a_newer_link_ends_the_one_before(people: Cast) -> None:
    first, second = link(people), link(people)
    with pytest.raises(LinkOver):
        accounts.set_password(first.code, PASSWORD)
    accounts.set_password(second.code, PASSWORD)


def over(people: Cast, made: NewLink) -> None:
    PasswordLink.objects.filter(person=made.person_id).update(expires_at=database_clock())


def off_and_on(people: Cast, _made: NewLink) -> None:
    access.switch_off(people.admin, "acme", people.operator.pk, why=WHY)
    access.switch_on(people.admin, "acme", people.operator.pk, why=WHY)


def maker_lost_the_right(people: Cast, _made: NewLink) -> None:
    second = person("second", people.tenant, Role.ADMIN)
    access.take_role_away(second, "acme", people.admin.pk, role=Role.ADMIN, why=WHY)


ENDS: dict[str, Callable[[Cast, NewLink], object]] = {
    "its time is over": over,
    "its person is switched off": lambda people, _: access.switch_off(
        people.admin, "acme", people.operator.pk, why=WHY
    ),
    "its person was switched off and on": off_and_on,
    "its maker lost the right": maker_lost_the_right,
    "its maker is switched off": lambda people, _: User.objects.filter(pk=people.admin.pk).update(
        is_active=False
    ),
    "its person works elsewhere now": lambda people, _: grant_role(
        people.operator, people.other_tenant, Role.VIEWER
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_link_ends(people: Cast, end: str) -> None:
    made = link(people)
    ENDS[end](people, made)
    with pytest.raises(LinkOver):
        accounts.set_password(made.code, PASSWORD)
    assert not AccessChange.objects.filter(kind=AccessChangeKind.PASSWORD_SET).exists()
    assert not signs_in("operator", PASSWORD)


def test_a_link_lives_to_its_last_moment(people: Cast) -> None:
    made = link(people)
    soon = database_clock() + timedelta(minutes=1)
    PasswordLink.objects.filter(person=made.person_id).update(expires_at=soon)
    accounts.set_password(made.code, PASSWORD)


@pytest.mark.parametrize("code", ["", "x", "\x00", "é" * 100, "0" * 43])
def test_what_was_never_a_code_opens_nothing(people: Cast, code: str) -> None:
    account(people)
    with pytest.raises(LinkOver):
        accounts.set_password(code, PASSWORD)


@pytest.mark.parametrize("weak", ["short", "password123", "Nora-Nil-1"])
def test_a_weak_password_is_refused_and_the_link_stays(people: Cast, weak: str) -> None:
    made = account(people)
    with pytest.raises(PasswordRefused):
        accounts.set_password(made.code, weak)
    accounts.set_password(made.code, PASSWORD)


def test_nobody_makes_a_link_to_an_account_with_rights_beyond_their_charge(people: Cast) -> None:
    grant_role(people.operator, people.other_tenant, Role.VIEWER)
    with pytest.raises(AccessRefused, match="where you do not administer"):
        link(people)
    grant_role(people.admin, people.other_tenant, Role.ADMIN)
    accounts.set_password(link(people).code, PASSWORD)


def test_whoever_is_known_nowhere_here_is_not_there(people: Cast) -> None:
    for who in (people.stranger, people.superuser):
        with pytest.raises(NotVisible):
            link(people, to=who)


@pytest.mark.parametrize(
    ("to", "words"), [("admin", "Nobody makes a link for themselves"), ("inactive", "switched off")]
)
def test_who_gets_no_link(people: Cast, to: str, words: str) -> None:
    with pytest.raises(AccessRefused, match=words):
        link(people, to=getattr(people, to))


@pytest.mark.parametrize(
    ("username", "name", "field", "words"),
    [
        ("operator", "Somebody Else", "username", "is taken"),
        ("Operator", "Somebody Else", "username", "is taken"),
        ("stranger", "Somebody Else", "username", "is taken"),
        ("me", "Somebody Else", "username", "Nobody can be called"),
        ("", "Somebody Else", "username", "unaccented"),
        ("#team", "Somebody Else", "username", "unaccented"),
        ("оlga", "Somebody Else", "username", "unaccented"),
        ("a" * 151, "Somebody Else", "username", "At most 150"),
        ("nora", "", "display_name", "printable"),
        ("nora", "Nora \u202e", "display_name", "printable"),
    ],
)
def test_what_is_typed_wrong_is_said_where_it_was_typed(
    people: Cast, username: str, name: str, field: str, words: str
) -> None:
    with pytest.raises(AccessRefused, match=words) as refused:
        account(people, username=username, name=name)
    assert refused.value.field == field
    assert not User.objects.filter(first_name=name).exclude(first_name="").exists()


def test_a_taken_name_says_the_same_of_here_and_elsewhere(people: Cast) -> None:
    said = set()
    for username in ("operator", "stranger"):
        with pytest.raises(AccessRefused) as refused:
            account(people, username=username)
        said.add(str(refused.value).replace(username, ""))
    assert len(said) == 1
