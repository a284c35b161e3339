"""Roles: names for sets of permissions. Only the permissions are stored; a role is given, never asked."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from guardian.shortcuts import assign_perm

from ledger.models import ReviewGroup, Tenant, User
from review.models import ApprovalScope


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


def grant_scope(user: User, tenant: Tenant, *, tool_glob: str = "*", effects: tuple[str, ...] = ()) -> None:
    """Let this person approve sends of these tools and effects (none: every effect)."""
    scope, _ = ApprovalScope.objects.get_or_create(
        tenant=tenant, tool_glob=tool_glob, effects=sorted(set(effects))
    )
    assign_perm("review.approve_sends", user, scope)


def join_first_group(user: User, tenant: Tenant) -> None:
    """Items of this tenant are this person's team's from birth."""
    group = ReviewGroup.objects.filter(tenant=tenant, is_first_owner=True).first()
    if group is not None:
        group.members.add(user)
