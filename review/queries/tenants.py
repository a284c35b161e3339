"""The tenants whose work a person may see."""

from __future__ import annotations

from dataclasses import replace

from django.db.models import Exists, OuterRef, QuerySet

from ledger.models import Tenant, User
from review.models import TenantPermission
from review.queries.values import TenantView


def tenants_of(user: User) -> tuple[TenantView, ...]:
    """By name; none for an inactive person."""
    seen = held_by(user, "view_work").values("content_object_id")
    owning = held_by(user, "decide_work", "administer").filter(content_object_id=OuterRef("pk"))
    tenants = Tenant.objects.filter(pk__in=seen).annotate(may_own=Exists(owning))
    return tuple(
        replace(tenant_view(tenant), may_own=tenant.may_own) for tenant in tenants.order_by("name", "pk")
    )


def tenant_view(tenant: Tenant) -> TenantView:
    return TenantView(tenant.pk, tenant.slug, tenant.name, suspended=not tenant.is_active)


def tenants_where(user: User, codename: str) -> frozenset[int]:
    """The ids of the tenants in which this person has this right; none for an inactive person."""
    return frozenset(held_by(user, codename).values_list("content_object_id", flat=True))


def held_by(user: User, *codenames: str) -> QuerySet[TenantPermission]:
    """Where this person has one of these rights; nowhere for an inactive person."""
    return TenantPermission.objects.filter(
        user_id=user.pk, user__is_active=True, permission__codename__in=codenames
    )
