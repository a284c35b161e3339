"""The people of one tenant, by what they may do there."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from ledger.models import AccessChange, Tenant, User
from ledger.rules.vocabulary import Effect
from review.models import ApprovalScope, ApprovalScopePermission, TenantPermission
from review.rights import Rights, may_administer


@dataclass(frozen=True)
class People:
    """Active people, by user name."""

    deciders: tuple[User, ...]
    administrators: tuple[User, ...]
    scopes: tuple[tuple[User, ApprovalScope], ...]
    seers: tuple[User, ...]
    auditors: tuple[User, ...]

    def rights_of(self, user: User) -> Rights:
        """What `review.rights.rights_of` answers, from what is read here already."""
        return Rights(
            view=user in self.seers,
            decide=user in self.deciders,
            administer=user in self.administrators,
            audit=user in self.auditors,
            scopes=tuple(scope for holder, scope in self.scopes if holder == user),
        )

    def approvers(self, tool: str, effect: Effect) -> tuple[User, ...]:
        """Who decides work within a scope that covers such a send."""
        covered = {user.pk for user, scope in self.scopes if scope.covers(tool, effect)}
        return tuple(user for user in self.deciders if user.pk in covered)


def people_of(tenant: Tenant) -> People:
    """Two queries."""
    held = TenantPermission.objects.filter(content_object=tenant, user__is_active=True).select_related(
        "user", "permission"
    )
    permissions = list(held.order_by("user__username"))
    scopes = (
        ApprovalScopePermission.objects.filter(
            content_object__tenant=tenant, permission__codename="approve_sends", user__is_active=True
        )
        .select_related("user", "content_object")
        .order_by("content_object_id")
    )
    return People(
        deciders=_holders(permissions, "decide_work"),
        administrators=_holders(permissions, "administer"),
        seers=_holders(permissions, "view_work"),
        auditors=_holders(permissions, "audit"),
        scopes=tuple((scope.user, scope.content_object) for scope in scopes),
    )


def _holders(permissions: list[TenantPermission], codename: str) -> tuple[User, ...]:
    return tuple(held.user for held in permissions if held.permission.codename == codename)


def who_is_known_in(tenant: Tenant) -> QuerySet[User]:
    """Everybody who has, or by the record once had, a right in this tenant; switched off or not."""
    holders = TenantPermission.objects.filter(content_object=tenant).values("user_id")
    approvers = ApprovalScopePermission.objects.filter(content_object__tenant=tenant).values("user_id")
    recorded = AccessChange.objects.filter(tenant=tenant, person__isnull=False, agent=None).values(
        "person_id"
    )
    known = Q(pk__in=holders) | Q(pk__in=approvers) | Q(pk__in=recorded)
    return User.objects.filter(known).order_by("username")


def tenants_with(person: User) -> tuple[Tenant, ...]:
    """Where this person has any right, switched off or not."""
    holding = TenantPermission.objects.filter(user=person).values("content_object_id")
    approving = ApprovalScopePermission.objects.filter(user=person).values("content_object__tenant_id")
    found = Tenant.objects.filter(Q(pk__in=holding) | Q(pk__in=approving))
    return tuple(found.order_by("pk"))


def administers_all_of(by: User, person: User) -> bool:
    """Does `by` administer every tenant in which this person has any right?"""
    return all(may_administer(by, tenant) for tenant in tenants_with(person))
