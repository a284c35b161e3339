"""Roles: names for sets of permissions. Only the permissions are stored; a role is given and taken, never
asked for a right."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from guardian.shortcuts import assign_perm

from ledger.models import ReviewGroup, Tenant, User
from review.models import ApprovalScope, ApprovalScopePermission, TenantPermission
from review.rights import Rights


class Role(StrEnum):
    """What `create_operator --role` accepts."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    APPROVER = "approver"
    ADMIN = "admin"
    AUDITOR = "auditor"


PERMISSIONS: Mapping[Role, tuple[str, ...]] = {
    Role.VIEWER: ("view_work",),
    Role.OPERATOR: ("view_work", "decide_work"),
    Role.APPROVER: ("view_work", "decide_work"),
    Role.ADMIN: ("view_work", "administer"),
    Role.AUDITOR: ("view_work", "audit"),
}
DECIDING = frozenset({Role.OPERATOR, Role.APPROVER})
OWN_RIGHT: Mapping[Role, str] = {
    Role.VIEWER: "view_work",
    Role.OPERATOR: "decide_work",
    Role.ADMIN: "administer",
    Role.AUDITOR: "audit",
}
"""The permission that makes the role; an approver's is the scopes."""
FALLS_WITH: Mapping[Role, tuple[Role, ...]] = {
    Role.VIEWER: tuple(Role),
    Role.OPERATOR: (Role.OPERATOR, Role.APPROVER),
}
"""Which roles are taken together: who does not see the work does nothing with it, and who does not decide
approves nothing. Every other role is taken alone."""


def roles_of(rights: Rights) -> tuple[Role, ...]:
    """The roles that somebody with these rights has."""
    held = {
        Role.VIEWER: rights.view,
        Role.OPERATOR: rights.decide,
        Role.APPROVER: rights.decide and bool(rights.scopes),
        Role.ADMIN: rights.administer,
        Role.AUDITOR: rights.audit,
    }
    return tuple(role for role in Role if held[role])


def falls_with(role: Role) -> tuple[Role, ...]:
    """The role, and what is nothing without it."""
    return FALLS_WITH.get(role, (role,))


def grant_role(user: User, tenant: Tenant, role: Role) -> None:
    """Add what this role means on this tenant; giving it again changes nothing.

    Who decides also joins the tenant's first review group; an approver may approve every tool and effect.
    """
    for codename in PERMISSIONS[role]:
        assign_perm(f"ledger.{codename}", user, tenant)
    if role is Role.APPROVER:
        grant_scope(user, tenant)
    if role in DECIDING:
        join_first_group(user, tenant)


def grant_scope(user: User, tenant: Tenant, *, tool_glob: str = "*", effects: tuple[str, ...] = ()) -> bool:
    """Let this person approve sends of these tools and effects (none: every effect). False: they could."""
    scope, _ = ApprovalScope.objects.get_or_create(
        tenant=tenant, tool_glob=tool_glob, effects=sorted(set(effects))
    )
    had_it = ApprovalScopePermission.objects.filter(user=user, content_object=scope).exists()
    assign_perm("review.approve_sends", user, scope)
    return not had_it


def join_first_group(user: User, tenant: Tenant) -> None:
    """Items of this tenant are this person's team's from birth."""
    group = ReviewGroup.objects.filter(tenant=tenant, is_first_owner=True).first()
    if group is not None:
        group.members.add(user)


def take_role(user: User, tenant: Tenant, role: Role) -> None:
    """Take this role here, and what is nothing without it; who does not decide leaves the groups."""
    taken = falls_with(role)
    codenames = [OWN_RIGHT[each] for each in taken if each in OWN_RIGHT]
    TenantPermission.objects.filter(
        user=user, content_object=tenant, permission__codename__in=codenames
    ).delete()
    if Role.APPROVER in taken:
        ApprovalScopePermission.objects.filter(user=user, content_object__tenant=tenant).delete()
    if Role.OPERATOR in taken:
        for group in ReviewGroup.objects.filter(tenant=tenant, members=user):
            group.members.remove(user)


def take_scope(user: User, scope: ApprovalScope) -> bool:
    """Take the right to approve within this scope. False: this person had it not."""
    taken, _ = ApprovalScopePermission.objects.filter(user=user, content_object=scope).delete()
    return bool(taken)
