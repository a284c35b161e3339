"""The tenants whose work a person may see."""

from __future__ import annotations

from ledger.models import Tenant, User
from review.models import TenantPermission
from review.queries.values import TenantView


def tenants_of(user: User) -> tuple[TenantView, ...]:
    """By name; none for an inactive person."""
    seen = TenantPermission.objects.filter(
        user_id=user.pk, user__is_active=True, permission__codename="view_work"
    ).values("content_object_id")
    return tuple(tenant_view(tenant) for tenant in Tenant.objects.filter(pk__in=seen).order_by("name", "pk"))


def tenant_view(tenant: Tenant) -> TenantView:
    return TenantView(tenant.pk, tenant.slug, tenant.name, suspended=not tenant.is_active)


def tenants_where(user: User, codename: str) -> frozenset[int]:
    """The ids of the tenants in which this person has this right; none for an inactive person."""
    held = TenantPermission.objects.filter(
        user_id=user.pk, user__is_active=True, permission__codename=codename
    )
    return frozenset(held.values_list("content_object_id", flat=True))
