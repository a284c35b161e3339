"""The items a person ticked, before something is done to them and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.models import ReviewGroup, ReviewItem, Tenant, User
from ledger.queries.arguments import sentence_of
from review.people import people_of
from review.queries.page import AssigneeView
from review.queries.tenants import tenants_of
from review.queries.urgency import rules_of_pairs


@dataclass(frozen=True)
class ChosenItem:
    """One ticked item; what is not seen is not in the list."""

    item_id: str
    sentence: str
    tenant: str
    reason: str


def chosen_items(user: User, item_ids: Sequence[str]) -> tuple[ChosenItem, ...]:
    """In the order they were ticked; queries do not grow with items."""
    tenants = {tenant.id: tenant.name for tenant in tenants_of(user)}
    seen = ReviewItem.objects.filter(pk__in=item_ids, tenant_id__in=tenants).select_related("attempt")
    found = {item.pk: item for item in seen}
    rules = rules_of_pairs({(item.attempt.policy_id, item.attempt.tool) for item in found.values()}).rules
    return tuple(
        ChosenItem(
            item_id,
            sentence_of(item.attempt, rules.get((item.attempt.policy_id, item.attempt.tool))),
            tenants[item.tenant_id],
            item.reason,
        )
        for item_id in item_ids
        if (item := found.get(item_id)) is not None
    )


def assignees_for(user: User, item_ids: Sequence[str]) -> tuple[AssigneeView, ...]:
    """Whom this person may give at least one of these items to, by name."""
    tenants = Tenant.objects.filter(pk__in=ReviewItem.objects.filter(pk__in=item_ids).values("tenant_id"))
    people: set[str] = set()
    groups: set[str] = set()
    for tenant in tenants:
        of_tenant = people_of(tenant)
        rights = of_tenant.rights_of(user)
        every_group = ReviewGroup.objects.filter(tenant=tenant)
        if rights.administer:
            people |= {person.get_username() for person in of_tenant.deciders}
            groups |= set(every_group.values_list("name", flat=True))
        elif rights.decide:
            people.add(user.get_username())
            groups |= set(every_group.filter(members=user).values_list("name", flat=True))
    return (
        *(AssigneeView(name, name) for name in sorted(people)),
        *(AssigneeView(f"#{name}", f"Group {name}") for name in sorted(groups)),
    )
