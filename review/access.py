"""What an administrator does to who may do what in their tenant. Each is one transaction, with its line in
the record; what is taken away takes that person's claims, ownership and votes with it.

Each raises `NotVisible`, `NotPermitted` and `AccessRefused` (the message is written for a person).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from ledger import lifecycle
from ledger.access import note_access
from ledger.events import operator_actor
from ledger.lifecycle import Leaving, Withdrawn
from ledger.models import AccessChange, Attempt, Tenant, User
from ledger.rules.names import scope_problem
from ledger.rules.vocabulary import AccessChangeKind, Effect
from ledger.rules.voiding import VoidCause
from ledger.transactions import Busy, durable
from review.answers import Refused
from review.decisions import effect_now
from review.door import NotVisible, enter_tenant, enter_tenant_to_write, require_administrator
from review.models import ApprovalScope, PasswordLink, TenantPermission
from review.people import administers_all_of, tenants_with, who_is_known_in
from review.rights import NONE, Rights, hold_rights, rights_of, stored_rights
from review.roles import Role, falls_with, grant_role, grant_scope, roles_of, take_role, take_scope

T = TypeVar("T")


class AccessRefused(Refused):
    """Of what is done to somebody's access."""


def give_role(by: User, slug: str, person_id: int, *, role: Role, why: str) -> None:
    """Give somebody known in the tenant one more role. Nobody gives rights to themselves."""

    def work(tenant: Tenant) -> None:
        _give_role(by, tenant, person_in(tenant, person_id), role, why)

    as_administrator(by, slug, work)


def add_person(by: User, slug: str, *, username: str, role: Role, why: str) -> int:
    """Give somebody who has an account a role in this tenant; their id."""

    def work(tenant: Tenant) -> int:
        person = User.objects.filter(username=username).first()
        if person is None:
            raise AccessRefused(f"Nobody has the user name {username}.", field="username")
        _give_role(by, tenant, person, role, why)
        return int(person.pk)

    return as_administrator(by, slug, work)


def take_role_away(by: User, slug: str, person_id: int, *, role: Role, why: str) -> None:
    """Take a role, and with it those that are nothing without it."""

    def work(tenant: Tenant) -> None:
        person = person_in(tenant, person_id)
        before = stored_rights(person, tenant)
        if role not in roles_of(before):
            raise AccessRefused(f"{person.get_username()} is not {role} in {tenant.name}.")
        if before.administer and Role.ADMIN in falls_with(role):
            _keep_an_administrator(person, tenant)
        take_role(person, tenant, role)
        gone = [each.value for each in roles_of(before) if each in falls_with(role)]
        ended = _end_part(by, person, tenant, rights_of(person, tenant), why)
        _note(AccessChangeKind.ROLE_TAKEN, by, person, tenant, why, roles=gone, **asdict(ended))

    as_administrator(by, slug, work)


def give_scope(
    by: User, slug: str, person_id: int, *, tool_glob: str, effects: tuple[Effect, ...], why: str
) -> None:
    """Let somebody who decides work approve sends of these tools and effects (none: every effect)."""
    problem = scope_problem(f"tool:{tool_glob}")
    if problem:
        raise AccessRefused(f"Tools: {problem}.")

    def work(tenant: Tenant) -> None:
        person = person_in(tenant, person_id)
        _check_receiver(by, person)
        if not rights_of(person, tenant).decide:
            raise AccessRefused(
                f"{person.get_username()} does not decide work here: make them operator first."
            )
        names = tuple(effect.value for effect in effects)
        if not grant_scope(person, tenant, tool_glob=tool_glob, effects=names):
            raise AccessRefused(f"{person.get_username()} has this scope in {tenant.name} already.")
        said = {"tools": tool_glob, "effects": sorted(set(names))}
        _note(AccessChangeKind.SCOPE_GIVEN, by, person, tenant, why, **said)

    as_administrator(by, slug, work)


def take_scope_away(by: User, slug: str, person_id: int, *, scope_id: int, why: str) -> None:
    """Take one scope. Their votes that no other scope of theirs covers fall."""

    def work(tenant: Tenant) -> None:
        person = person_in(tenant, person_id)
        scope = ApprovalScope.objects.filter(tenant=tenant, pk=scope_id).first()
        if scope is None or not take_scope(person, scope):
            raise AccessRefused(f"{person.get_username()} has no such scope in {tenant.name}.")
        ended = _end_part(by, person, tenant, rights_of(person, tenant), why)
        said = {"tools": scope.tool_glob, "effects": scope.effects, **asdict(ended)}
        _note(AccessChangeKind.SCOPE_TAKEN, by, person, tenant, why, **said)

    as_administrator(by, slug, work)


def switch_off(by: User, slug: str, person_id: int, *, why: str) -> None:
    """Nobody of this account signs in any more, in whatever tenant: it takes the administrator of each."""

    def work(person: User, tenants: tuple[Tenant, ...]) -> None:
        _check_is(person, active=True)
        for tenant in tenants:
            if rights_of(person, tenant).administer:
                _keep_an_administrator(person, tenant)
        for tenant in tenants:
            ended = _end_part(by, person, tenant, NONE, why)
            _note(AccessChangeKind.SWITCHED_OFF, by, person, tenant, why, **asdict(ended))
        _set_active(person, active=False)

    _as_administrator_of_all(by, slug, person_id, work)


def switch_on(by: User, slug: str, person_id: int, *, why: str) -> None:
    """They sign in again, with the rights they had. What ended when they were switched off stays ended."""

    def work(person: User, tenants: tuple[Tenant, ...]) -> None:
        _check_is(person, active=False)
        _set_active(person, active=True)
        for tenant in tenants:
            _note(AccessChangeKind.SWITCHED_ON, by, person, tenant, why)

    _as_administrator_of_all(by, slug, person_id, work)


def end_votes_in_conflict(
    by: User, person: User, tenant: Tenant, *, why: str, conflict: Callable[[Attempt], bool]
) -> Withdrawn:
    """Void the votes of a person who by a change of duties may not have given them."""
    leaving = Leaving(
        person, why, VoidCause.CONFLICT, keeps_items=True, still_approves=lambda each: not conflict(each)
    )
    return lifecycle.withdraw(leaving, tenant_id=tenant.pk, actor=operator_actor(by))


def as_administrator(by: User, slug: str, work: Callable[[Tenant], T]) -> T:
    """One transaction in which nobody else changes rights of this tenant, and this person administers it."""

    def press() -> T:
        tenant, rights = enter_tenant_to_write(by, slug, to_change=True)
        require_administrator(tenant, rights)
        return work(tenant)

    return durable(press)


def person_in(tenant: Tenant, person_id: int) -> User:
    """Somebody who has, or once had, a right in this tenant. Raises `NotVisible`."""
    person = who_is_known_in(tenant).filter(pk=person_id).first()
    if person is None:
        raise NotVisible(str(person_id))
    return person


def _as_administrator_of_all(
    by: User, slug: str, person_id: int, work: Callable[[User, tuple[Tenant, ...]], None]
) -> None:
    def press() -> None:
        tenant, rights = enter_tenant(by, slug)
        require_administrator(tenant, rights)
        person = person_in(tenant, person_id)
        tenants = tenants_with(person)
        hold_rights(tenant, *tenants, to_change=True)
        require_administrator(*enter_tenant(by, slug))
        if tenants_with(person) != tenants:
            raise Busy("their rights are being changed elsewhere")
        if not administers_all_of(by, person):
            raise AccessRefused(
                f"{person.get_username()} has rights where you do not administer. Take their roles in "
                f"{tenant.name} away instead."
            )
        work(person, tenants or (tenant,))

    durable(press)


def _give_role(by: User, tenant: Tenant, person: User, role: Role, why: str) -> None:
    _check_receiver(by, person)
    if role in roles_of(rights_of(person, tenant)):
        raise AccessRefused(f"{person.get_username()} is {role} in {tenant.name} already.")
    grant_role(person, tenant, role)
    _note(AccessChangeKind.ROLE_GIVEN, by, person, tenant, why, roles=[role.value])


def why_not_give(by: User, person: User) -> str:
    """Why this administrator cannot give this person anything; empty where they can."""
    if person.pk == by.pk:
        return "Nobody gives rights to themselves: another administrator has to."
    return "" if person.is_active else f"{person.get_username()} is switched off."


def _check_receiver(by: User, person: User) -> None:
    problem = why_not_give(by, person)
    if problem:
        raise AccessRefused(problem)


def _check_is(person: User, *, active: bool) -> None:
    if person.is_active is not active:
        how = "on" if person.is_active else "off"
        raise AccessRefused(f"{person.get_username()} is switched {how} already.")


def _keep_an_administrator(leaving: User, tenant: Tenant) -> None:
    others = TenantPermission.objects.filter(
        content_object=tenant, permission__codename="administer", user__is_active=True
    ).exclude(user=leaving)
    if not others.exists():
        raise AccessRefused(
            f"{leaving.get_username()} is the last administrator of {tenant.name}: give the role to somebody "
            f"else first."
        )


def _end_part(by: User, person: User, tenant: Tenant, rights: Rights, why: str) -> Withdrawn:
    """End what a person with these rights left has no right to any more."""
    leaving = Leaving(
        person,
        why,
        VoidCause.RIGHT,
        keeps_items=rights.decide,
        still_approves=lambda attempt: rights.may_approve(attempt.tool, effect_now(attempt)),
    )
    return lifecycle.withdraw(leaving, tenant_id=tenant.pk, actor=operator_actor(by))


def _set_active(person: User, *, active: bool) -> None:
    """After the operations are locked: leave locks them first, and then the agent's owner."""
    person.is_active = active
    person.save(update_fields=["is_active"])
    if not active:
        PasswordLink.objects.filter(person=person).delete()


def _note(
    kind: AccessChangeKind, by: User, person: User, tenant: Tenant, why: str, **data: Any
) -> AccessChange:
    return note_access(kind, tenant_id=tenant.pk, by=by, why=why, person=person, **data)
