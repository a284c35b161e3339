"""The tenants a person is in charge of: those they administer or audit."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.models import Tenant, User
from review.door import (
    NotPermitted,
    NotVisible,
    administrators,
    enter_tenant,
    require_administrator,
    right_needed,
)
from review.queries.tenants import tenant_view, tenants_of, tenants_where
from review.queries.values import TenantView
from review.rights import Rights

RIGHTS = ("administer", "audit")


@dataclass(frozen=True)
class Charge:
    """One tenant this person is in charge of, what they may do there, and the other ones."""

    tenant: Tenant
    rights: Rights
    tenants: tuple[TenantView, ...]

    @property
    def view(self) -> TenantView:
        return tenant_view(self.tenant)


def in_charge(user: User, slug: str = "") -> Charge:
    """The tenant of this slug, or else the first of this person's. Raises `NotVisible` for what they may not
    know of, `NotPermitted` where they see the work and are not in charge."""
    seen = tenants_of(user)
    charged = tenants_where(user, "administer") | tenants_where(user, "audit")
    mine = tuple(tenant for tenant in seen if tenant.id in charged)
    first = mine or seen
    if not slug and not first:
        raise NotVisible
    tenant, rights = enter_tenant(user, slug or first[0].slug)
    if not (rights.administer or rights.audit):
        raise NotPermitted(right_needed(tenant, *RIGHTS), granted_by=administrators(tenant))
    return Charge(tenant, rights, mine)


def administered(user: User, slug: str) -> Charge:
    """The tenant of this slug, for somebody who is about to change something there. Raises as
    `in_charge`, and `NotPermitted` for who only audits."""
    charge = in_charge(user, slug)
    require_administrator(charge.tenant, charge.rights)
    return charge
