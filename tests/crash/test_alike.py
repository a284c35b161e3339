"""Whose pages the whole fsck of a lane counts: everybody's that differs from the agent's owner's."""

from __future__ import annotations

import pytest

from ledger.models import ApiKey, User
from review import ownership
from review.models import TenantPermission
from review.queries import queue
from review.queries.values import QueueFilters, Tab
from tests.crash.suite import clerk, tenants
from tests.crash.suite.chance import plan_of
from tests.crash.suite.warmth import NOBODY
from tests.support import make


@pytest.fixture
def world(db: None) -> tenants.World:
    """A tenant with an item that is the first person's."""
    made = tenants.prepare(plan_of(1), NOBODY, NOBODY)
    key = ApiKey.objects.get(tenant_id=made.tenant_id, agent__name="bot")
    make.policy(key.tenant)
    item = make.item_of(make.for_a_person(key))
    first = named(made, "first")
    ownership.assign(first, item.pk, to=first.username, why="I know this")
    return made


def named(world: tenants.World, name: str) -> User:
    return User.objects.get(username=f"{name}-{world.slug}")


def test_who_has_nothing_of_their_own_sees_what_the_owner_sees_and_is_not_asked(world: tenants.World) -> None:
    shown = {
        name: queue(named(world, name), QueueFilters(tab=Tab.ALL)).counts
        for name in ("owner", *tenants.DECIDING)
    }
    assert shown["second"] == shown["third"] == shown["owner"] != shown["first"]

    clerk.leave_one_of_those_alike()
    left = TenantPermission.objects.filter(permission__codename="view_work", content_object=world.tenant_id)
    asked = set(left.values_list("user__username", flat=True))
    assert asked == {f"{name}-{world.slug}" for name in ("owner", "first", "admin")}
