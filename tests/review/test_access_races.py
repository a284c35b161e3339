"""A right is taken while its holder decides, and two administrators act at once, each on a connection."""

from __future__ import annotations

from functools import partial

import pytest

from ledger.models import AccessChange, ReviewItem
from review import access, decisions, ownership
from review.access import AccessRefused
from review.door import NotPermitted, NotVisible
from review.models import TenantPermission
from review.ownership import UnknownAssignee
from review.roles import Role
from tests.support import make, races
from tests.support.cast import Cast, cast, person

pytestmark = pytest.mark.django_db(transaction=True)

at_once = partial(races.at_once, may_raise=(AccessRefused, NotPermitted, NotVisible, UnknownAssignee))
ROUNDS = 8


@pytest.fixture
def people(transactional_db: None) -> Cast:
    return cast()


def test_a_vote_and_the_loss_of_its_right_never_leave_a_vote_that_counts(people: Cast) -> None:
    for number in range(ROUNDS):
        voter = person(f"voter-{number}", people.tenant, Role.APPROVER)
        held = make.held(people.key)
        item = make.item_of(held)
        at_once(
            lambda voter=voter, item=item: decisions.approve(voter, item.pk, why="go"),  # type: ignore[misc]
            lambda voter=voter: access.take_role_away(  # type: ignore[misc]
                people.admin, "acme", voter.pk, role=Role.OPERATOR, why="left"
            ),
        )
        assert not held.votes.filter(voided_at=None, approval=None).exists()
        assert not held.approvals.filter(voided_at=None).exists()
        assert AccessChange.objects.filter(person=voter).count() == 1


def test_nobody_without_the_right_ends_up_with_an_item(people: Cast) -> None:
    for number in range(ROUNDS):
        worker = person(f"worker-{number}", people.tenant, Role.OPERATOR)
        item = make.item_of(make.for_a_person(people.key))
        at_once(
            lambda worker=worker, item=item: ownership.assign(  # type: ignore[misc]
                people.admin, item.pk, to=worker.username, why="yours"
            ),
            lambda worker=worker: access.switch_off(people.admin, "acme", worker.pk, why="left"),  # type: ignore[misc]
        )
        assert ReviewItem.objects.get(pk=item.pk).owner is None


def test_two_administrators_who_take_each_other_away_leave_one(people: Cast) -> None:
    second = person("second", people.tenant, Role.ADMIN)
    at_once(
        lambda: access.take_role_away(people.admin, "acme", second.pk, role=Role.ADMIN, why="me"),
        lambda: access.take_role_away(second, "acme", people.admin.pk, role=Role.ADMIN, why="no, me"),
    )
    left = TenantPermission.objects.filter(
        content_object=people.tenant, permission__codename="administer", user__is_active=True
    )
    assert left.count() == 1
