"""Ownership: leases shown to others, taken over by name, given within the tenant only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from ledger.lifecycle import Decided, DecisionRefused
from ledger.models import ReviewGroup, ReviewItem, User
from ledger.rules.vocabulary import EventKind
from ledger.transactions import database_clock
from review import ownership
from review.door import NotPermitted
from review.ownership import UnknownAssignee
from review.queries import NotVisible
from tests.support import make
from tests.support.cast import Cast

Own = Callable[[User, str], Decided]

OWN: dict[str, Own] = {
    "claim": ownership.claim,
    "release": ownership.release,
    "take_over": lambda user, item: ownership.take_over(user, item, why="away"),
    "assign": lambda user, item: ownership.assign(user, item, to="operator", why="yours"),
    "note": lambda user, item: ownership.note(user, item, why="asked the provider"),
}
everything = pytest.mark.parametrize("own", OWN.values(), ids=OWN.keys())


@pytest.fixture
def item(people: Cast) -> ReviewItem:
    return make.item_of(make.unknown(people.key))


@everything
def test_who_may_not_know_learns_nothing(people: Cast, item: ReviewItem, own: Own) -> None:
    for user in people.blind:
        with pytest.raises(NotVisible):
            own(user, item.pk)
    with pytest.raises(NotVisible):
        own(people.operator, "rev_unknown")


@everything
def test_who_only_reads_owns_nothing(people: Cast, item: ReviewItem, own: Own) -> None:
    for user in (people.viewer, people.auditor):
        with pytest.raises(NotPermitted):
            own(user, item.pk)


def test_a_claim_lasts_15_minutes_and_is_extended_by_its_holder(people: Cast, item: ReviewItem) -> None:
    first = ownership.claim(people.operator, item.pk).item
    assert first.claim_until is not None
    assert timedelta(minutes=14) < first.claim_until - database_clock() <= timedelta(minutes=15)
    again = ownership.claim(people.operator, item.pk).item
    assert again.claim_until is not None
    assert again.claim_until > first.claim_until


def test_a_live_claim_of_another_is_not_claimed_but_taken_over_by_name(
    people: Cast, item: ReviewItem
) -> None:
    ownership.claim(people.operator, item.pk)
    with pytest.raises(DecisionRefused, match="operator"):
        ownership.claim(people.second_operator, item.pk)
    taken = ownership.take_over(people.second_operator, item.pk, why="operator is on holiday")
    assert taken.event.kind == EventKind.TAKEN_OVER
    assert taken.event.data["displaced"] == "operator"
    assert taken.item.claimed_by == people.second_operator


def test_an_expired_claim_is_free(people: Cast, item: ReviewItem) -> None:
    ownership.claim(people.operator, item.pk)
    make.at(item, claim_until=database_clock() - timedelta(seconds=1))
    assert ownership.claim(people.second_operator, item.pk).item.claimed_by == people.second_operator


def test_nobody_to_take_over_from(people: Cast, item: ReviewItem) -> None:
    with pytest.raises(DecisionRefused):
        ownership.take_over(people.operator, item.pk, why="just in case")


def test_only_the_holder_releases(people: Cast, item: ReviewItem) -> None:
    ownership.claim(people.operator, item.pk)
    with pytest.raises(DecisionRefused):
        ownership.release(people.second_operator, item.pk)
    assert ownership.release(people.operator, item.pk).item.claimed_by is None


class TestAssigning:
    def test_an_administrator_gives_it_to_anybody_who_decides(self, people: Cast, item: ReviewItem) -> None:
        assigned = ownership.assign(people.admin, item.pk, to="operator", why="you know this one")
        assert assigned.item.owner == people.operator
        assert assigned.decision.why == "you know this one"

    def test_an_operator_takes_it_and_gives_it_to_own_groups_only(
        self, people: Cast, item: ReviewItem
    ) -> None:
        own = ReviewGroup.objects.create(tenant=people.tenant, name="Payments")
        own.members.add(people.operator)
        ReviewGroup.objects.create(tenant=people.tenant, name="Legal")
        assert (
            ownership.assign(people.operator, item.pk, to="operator", why="mine").item.owner
            == people.operator
        )
        assert ownership.assign(people.operator, item.pk, to="#Payments", why="ours").item.owner_group == own
        for to in ("approver", "#Legal"):
            with pytest.raises(NotPermitted, match="administer in Acme"):
                ownership.assign(people.operator, item.pk, to=to, why="yours")

    @pytest.mark.parametrize(
        "to", ["stranger", "superuser", "inactive", "viewer", "nobody", "#Nowhere", "#Globex desk", ""]
    )
    def test_nobody_without_rights_there_becomes_the_owner(
        self, people: Cast, item: ReviewItem, to: str
    ) -> None:
        ReviewGroup.objects.create(tenant=people.other_tenant, name="Globex desk")
        with pytest.raises(UnknownAssignee):
            ownership.assign(people.admin, item.pk, to=to, why="yours")
        item.refresh_from_db()
        assert item.owner is None


def test_notes_are_kept_on_closed_items_too(people: Cast) -> None:
    attempt = make.for_a_person(people.key)
    item = make.item_of(attempt)
    make.reported(people.key, attempt, "succeeded", result_ref="re_1")
    noted = ownership.note(people.admin, item.pk, why="the provider confirmed by phone")
    assert noted.item.closed_at is not None
    assert noted.decision.why == "the provider confirmed by phone"
    with pytest.raises(DecisionRefused):
        ownership.claim(people.operator, item.pk)
