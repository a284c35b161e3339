"""R97: some ways to ask who may do something leave the inactive out, and some do not.

Kind: one question with several answers. Every list of people comes from the function the write path asks, and
nobody stays owner of anything whose account is switched off, also where that was done behind our back.
"""

from __future__ import annotations

import pytest
from django.test import Client

from ledger.models import User
from review import access, ownership
from review.ownership import UnknownAssignee
from review.queries import item_page
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db(transaction=True)

ITEMS = 5


@pytest.fixture
def people(transactional_db: None) -> Cast:
    return cast()


@pytest.fixture
def owned(people: Cast) -> list[str]:
    """Items that the operator owns."""
    items = [make.item_of(make.for_a_person(people.key)).pk for _ in range(ITEMS)]
    for item_id in items:
        ownership.assign(people.admin, item_id, to="operator", why="theirs")
    return items


def offered(viewer: User, item_id: str) -> set[str]:
    page = item_page(viewer, item_id)
    return {one.value for one in (*page.assignees, *page.colleagues)}


def test_switched_off_at_the_desk_nothing_is_theirs_and_nobody_is_offered_them(
    people: Cast, owned: list[str]
) -> None:
    window = Client()
    window.force_login(people.operator, backend="django.contrib.auth.backends.ModelBackend")
    assert window.get(f"/review/{owned[0]}/").status_code == 200
    assert "operator" in offered(people.admin, owned[0])
    access.switch_off(people.admin, "acme", people.operator.pk, why="left the company")

    assert window.get(f"/review/{owned[0]}/").status_code == 303, "the open window has to sign in"
    for item_id in owned:
        owner = item_page(people.admin, item_id).owner
        assert owner.person is None
        assert "operator" not in offered(people.admin, item_id)
    with pytest.raises(UnknownAssignee):
        ownership.assign(people.admin, owned[0], to="operator", why="they know it")


def test_switched_off_behind_our_back_they_are_not_offered_and_nothing_can_be_given_to_them(
    people: Cast, owned: list[str]
) -> None:
    User.objects.filter(pk=people.operator.pk).update(is_active=False)
    for item_id in owned:
        assert not item_page(people.admin, item_id).owner.person_is_active
        assert "operator" not in offered(people.admin, item_id)
    with pytest.raises(UnknownAssignee):
        ownership.assign(people.admin, owned[0], to="operator", why="they know it")
