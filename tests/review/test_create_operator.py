"""`create_operator` makes people, and never changes one by the way."""

from __future__ import annotations

import pytest

from ledger.models import Tenant, User
from ledger.rules.vocabulary import Effect
from review.rights import may_administer, may_approve, may_decide, may_view, rights_of
from tests.ledger.commands.support import Ran, run
from tests.support import make

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    return make.tenant("acme")


def create(username: str, role: str, *more: str, tenant: str = "acme") -> Ran:
    return run("create_operator", username, "--tenant", tenant, "--role", role, *more)


def test_a_person_is_created_with_a_made_up_password_shown_once(acme: Tenant) -> None:
    ran = create("ada", "operator", "--email", "ada@example.org")
    user = User.objects.get(username="ada")
    assert ran.exit == 0
    assert ran.data["created"] is True
    assert user.check_password(ran.data["password"])
    assert (user.email, user.is_staff, user.is_superuser) == ("ada@example.org", False, False)
    assert may_decide(user, acme)


@pytest.mark.parametrize(
    ("role", "view", "decide", "administer", "audit", "approve"),
    [
        ("viewer", True, False, False, False, False),
        ("operator", True, True, False, False, False),
        ("approver", True, True, False, False, True),
        ("admin", True, False, True, False, False),
        ("auditor", True, False, False, True, False),
    ],
)
def test_each_role_gives_its_rights(
    acme: Tenant, role: str, view: bool, decide: bool, administer: bool, audit: bool, approve: bool
) -> None:
    assert create("ada", role).exit == 0
    user = User.objects.get(username="ada")
    rights = rights_of(user, acme)
    assert (rights.view, rights.decide, rights.administer, rights.audit) == (view, decide, administer, audit)
    assert may_approve(user, acme, "any.tool", Effect.PAYMENT) is approve


def test_a_given_password_is_used_and_not_repeated(acme: Tenant) -> None:
    ran = create("ada", "viewer", "--password", "correct horse battery")
    assert User.objects.get(username="ada").check_password("correct horse battery")
    assert ran.data["password"] is None


def test_repeating_it_changes_nothing(acme: Tenant) -> None:
    first = create("ada", "operator", "--password", "correct horse battery")
    again = create("ada", "operator", "--password", "correct horse battery")
    assert (first.data["created"], again.data["created"]) == (True, False)
    assert create("ada", "operator").exit == 0
    assert User.objects.get(username="ada").check_password("correct horse battery")


def test_it_adds_a_role_in_a_second_tenant(acme: Tenant) -> None:
    globex = make.tenant("globex")
    create("ada", "operator")
    assert create("ada", "admin", tenant="globex").data == {
        "username": "ada",
        "tenant": "globex",
        "role": "admin",
        "created": False,
        "password": None,
    }
    user = User.objects.get(username="ada")
    assert may_decide(user, acme)
    assert may_administer(user, globex)
    assert not may_administer(user, acme)


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (("ada", "operator", "--password", "short"), 3),
        (("ada", "operator", "--password", "12345678"), 3),
        (("ad a", "operator"), 2),
        (("ada\n", "operator"), 2),
        (("ada", "operator", "--email", "nowhere"), 2),
        (("bob", "operator", "--password", "another long one"), 4),
        (("bob", "operator", "--email", "other@example.org"), 4),
        (("gone", "operator"), 4),
    ],
)
def test_what_is_refused_leaves_nothing(acme: Tenant, arguments: tuple[str, ...], exit_code: int) -> None:
    User.objects.create_user("bob", password="bobs-long-secret")
    User.objects.create_user("gone", password="gones-long-secret", is_active=False)
    assert create(*arguments).exit == exit_code
    assert set(User.objects.values_list("username", flat=True)) == {"bob", "gone"}
    assert not may_view(User.objects.get(username="bob"), acme)


def test_an_unknown_tenant_is_named_with_the_mend(acme: Tenant) -> None:
    ran = create("ada", "viewer", tenant="acmee")
    assert ran.exit == 2
    assert "create_tenant acmee" in ran.data["mend"]
    assert not User.objects.exists()
