"""What administrators and people say about people: rights, accounts, passwords, absences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from ledger.models import AccessChange, User
from ledger.rules.vocabulary import AccessChangeKind as C
from ledger.rules.vocabulary import Effect
from ledger.transactions import database_clock
from review import absences, access, accounts, decisions, ownership
from review.models import Absence, ApprovalScope
from review.roles import Role
from tests.crash.decisions.case import SLUG, WHY, About, Case, again, by_two, held, sent, who
from tests.support.cast import Cast, person

PASSWORD = "a-long-enough-passphrase"


def somebody(people: Cast, number: int, *roles: Role) -> User:
    return person(f"somebody-{number}", people.tenant, *(roles or (Role.APPROVER,)))


def a_person(people: Cast, number: int) -> About:
    return {"person": somebody(people, number).pk}


def a_viewer(people: Cast, number: int) -> About:
    return {"person": somebody(people, number, Role.VIEWER).pk}


def an_operator(people: Cast, number: int) -> About:
    return {"person": somebody(people, number, Role.OPERATOR).pk}


def a_busy_person(people: Cast, number: int) -> About:
    """With a claim, an item, a waiting vote and an approval that others would lose with the right."""
    busy = somebody(people, number)
    ownership.claim(busy, sent(people, number)["item"])
    ownership.assign(people.admin, sent(people, number)["item"], to=busy.username, why=WHY)
    decisions.approve(busy, held(people, number)["item"], why=WHY)
    decisions.approve(busy, by_two(people, number)["item"], why=WHY)
    return {"person": busy.pk}


def one_with_a_scope(people: Cast, number: int) -> About:
    about = a_busy_person(people, number)
    scope = ApprovalScope.objects.get(person_permissions__user_id=about["person"])
    return {**about, "scope": scope.pk}


def one_switched_off(people: Cast, number: int) -> About:
    off = somebody(people, number)
    access.switch_off(people.admin, SLUG, off.pk, why=WHY)
    return {"person": off.pk}


def one_without_a_scope(people: Cast, number: int) -> About:
    return {**an_operator(people, number), "tools": f"mail.{number}.*"}


def nobody_yet(_: Cast, number: int) -> About:
    return {"name": f"new-{number}"}


def known_elsewhere(people: Cast, number: int) -> About:
    other = person(f"elsewhere-{number}", people.other_tenant, Role.VIEWER)
    return {"name": other.username, "person": other.pk}


def one_with_a_link(people: Cast, number: int) -> About:
    about = a_person(people, number)
    return {**about, "code": accounts.make_link(people.admin, SLUG, about["person"], why=WHY).code}


def one_away(people: Cast, number: int) -> About:
    about = an_operator(people, number)
    _mark_away(about)
    return about


def _mark_away(about: About) -> None:
    until = database_clock() + timedelta(days=1)
    absences.mark_away(who("admin"), SLUG, about["person"], until=until, why=WHY)


def changed(kind: C) -> Callable[[About], int]:
    return lambda a: AccessChange.objects.filter(kind=kind, person_id=a["person"], why=WHY).count()


def passwords_set(about: About) -> int:
    return AccessChange.objects.filter(kind=C.PASSWORD_SET, person_id=about["person"]).count()


ACCESS: Mapping[str, Case] = {
    "give a role": Case(
        a_viewer,
        lambda a: access.give_role(who("admin"), SLUG, a["person"], role=Role.OPERATOR, why=WHY),
        changed(C.ROLE_GIVEN),
    ),
    "take a role": Case(
        a_busy_person,
        lambda a: access.take_role_away(who("admin"), SLUG, a["person"], role=Role.VIEWER, why=WHY),
        changed(C.ROLE_TAKEN),
    ),
    "take a scope": Case(
        one_with_a_scope,
        lambda a: access.take_scope_away(who("admin"), SLUG, a["person"], scope_id=a["scope"], why=WHY),
        changed(C.SCOPE_TAKEN),
    ),
    "switch off": Case(
        a_busy_person,
        lambda a: access.switch_off(who("admin"), SLUG, a["person"], why=WHY),
        changed(C.SWITCHED_OFF),
    ),
    "switch on": Case(
        one_switched_off,
        lambda a: access.switch_on(who("admin"), SLUG, a["person"], why=WHY),
        changed(C.SWITCHED_ON),
    ),
    "add a person": Case(
        known_elsewhere,
        lambda a: access.add_person(who("admin"), SLUG, username=a["name"], role=Role.VIEWER, why=WHY),
        changed(C.ROLE_GIVEN),
    ),
    "give a scope": Case(
        one_without_a_scope,
        lambda a: access.give_scope(
            who("admin"), SLUG, a["person"], tool_glob=a["tools"], effects=(Effect.WRITE,), why=WHY
        ),
        changed(C.SCOPE_GIVEN),
    ),
    "make an account": Case(
        nobody_yet,
        lambda a: accounts.make_account(
            who("admin"), SLUG, username=a["name"], display_name="New", role=Role.VIEWER, why=WHY
        ),
        lambda a: User.objects.filter(username=a["name"]).count(),
    ),
    "make a link": again(
        Case(
            a_person,
            lambda a: accounts.make_link(who("admin"), SLUG, a["person"], why=WHY),
            changed(C.LINK_MADE),
        )
    ),
    "set a password": Case(
        one_with_a_link,
        lambda a: accounts.set_password(a["code"], PASSWORD),
        passwords_set,
    ),
    "change a password": again(
        Case(
            a_person,
            lambda a: accounts.change_password(User.objects.get(pk=a["person"]), PASSWORD),
            passwords_set,
        )
    ),
    "say who is away": again(
        Case(an_operator, _mark_away, lambda a: Absence.objects.filter(person_id=a["person"]).count())
    ),
    "say who is back": Case(
        one_away,
        lambda a: absences.mark_back(who("admin"), SLUG, a["person"], why=WHY),
        lambda a: Absence.objects.filter(person_id=a["person"], until=None).count(),
    ),
}
