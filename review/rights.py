"""Rights of a person on a tenant, read fresh for every question.

They are object permissions and nothing else: the superuser flag, groups and global permissions give nothing,
and an inactive person has none. No answer is kept: a right taken away is gone with the next question.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledger.lifecycle.locking import lock_name
from ledger.models import Tenant, User
from ledger.rules.vocabulary import Effect
from review.models import ApprovalScope, TenantPermission


@dataclass(frozen=True)
class Rights:
    """What one person may do in one tenant. `scopes`: within which sends they may approve."""

    view: bool = False
    decide: bool = False
    administer: bool = False
    audit: bool = False
    scopes: tuple[ApprovalScope, ...] = ()

    def may_approve(self, tool: str, effect: Effect) -> bool:
        """Approving is deciding within a scope: it needs both."""
        return self.decide and any(scope.covers(tool, effect) for scope in self.scopes)


NONE = Rights()


def rights_of(user: User, tenant: Tenant) -> Rights:
    """Everything this person may do in this tenant; two queries."""
    held = _permissions(user.pk, tenant.pk)
    return _rights(held, _scopes(user.pk, tenant.pk)) if held else NONE


def stored_rights(user: User, tenant: Tenant) -> Rights:
    """What this person may do in this tenant while they are switched on, whether or not they are."""
    held = frozenset(
        TenantPermission.objects.filter(content_object=tenant, user=user).values_list(
            "permission__codename", flat=True
        )
    )
    return _rights(held, _scopes(user.pk, tenant.pk))


def hold_rights(*tenants: Tenant, to_change: bool = False) -> None:
    """Keep the rights in these tenants as they are until the transaction ends: who takes one away waits for
    this decision, or this decision sees it taken. Ask for rights after this, and before any other lock."""
    for tenant_id in sorted(tenant.pk for tenant in tenants):
        lock_name("access", tenant_id, shared=not to_change)


def may_view(user: User, tenant: Tenant) -> bool:
    return "view_work" in _permissions(user.pk, tenant.pk)


def may_decide(user: User, tenant: Tenant) -> bool:
    return "decide_work" in _permissions(user.pk, tenant.pk)


def may_administer(user: User, tenant: Tenant) -> bool:
    return "administer" in _permissions(user.pk, tenant.pk)


def may_approve(user: User, tenant: Tenant, tool: str, effect: Effect) -> bool:
    return rights_of(user, tenant).may_approve(tool, effect)


class ScopedApprovers:
    """Answers the ledger's question whether a person may still approve."""

    def may_approve(self, *, user_id: int, tenant_id: int, tool: str, effect: Effect) -> bool:
        user = User.objects.filter(pk=user_id).first()
        tenant = Tenant.objects.filter(pk=tenant_id).first()
        return user is not None and tenant is not None and may_approve(user, tenant, tool, effect)

    def may_decide(self, *, user_id: int, tenant_id: int) -> bool:
        return "decide_work" in _permissions(user_id, tenant_id)


def _rights(held: frozenset[str], scopes: tuple[ApprovalScope, ...]) -> Rights:
    return Rights(
        view="view_work" in held,
        decide="decide_work" in held,
        administer="administer" in held,
        audit="audit" in held,
        scopes=scopes,
    )


def _permissions(user_id: int | None, tenant_id: int) -> frozenset[str]:
    held = TenantPermission.objects.filter(
        content_object_id=tenant_id, user_id=user_id, user__is_active=True
    ).values_list("permission__codename", flat=True)
    return frozenset(held)


def _scopes(user_id: int, tenant_id: int) -> tuple[ApprovalScope, ...]:
    held = ApprovalScope.objects.filter(
        tenant_id=tenant_id,
        person_permissions__user_id=user_id,
        person_permissions__permission__codename="approve_sends",
    )
    return tuple(held.order_by("pk"))
