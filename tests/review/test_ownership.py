"""Ownership: leases shown to others, taken over by name, given within the tenant only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from ledger.lifecycle import Decided, DecisionRefused
from ledger.models import ReviewGroup, ReviewItem, User
from ledger.rules.looked_up import LookedUpKind
from ledger.rules.vocabulary import EventKind, ReviewReason
from ledger.transactions import database_clock
from review import ownership
from review.door import NotPermitted
from review.ownership import BadAddress, UnknownAssignee
from review.queries import NotVisible
from tests.support import make
from tests.support.cast import Cast

Own = Callable[[User, str], Decided]

HOUR = timedelta(hours=1)

OWN: dict[str, Own] = {
    "claim": ownership.claim,
    "release": ownership.release,
    "take_over": lambda user, item: ownership.take_over(user, item, why="away"),
    "assign": lambda user, item: ownership.assign(user, item, to="operator", why="yours"),
    "hand_over": lambda user, item: ownership.hand_over(user, item, to="approver", why="half done"),
    "snooze": lambda user, item: ownership.snooze(user, item, until=HOUR, why="they open at nine"),
    "wake": ownership.wake,
    "wait_on": lambda user, item: ownership.wait_on(user, item, what="their support"),
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


@pytest.mark.parametrize("holds", ["owns", "claims"])
def test_handed_over_it_is_the_colleagues_with_claim_and_note(
    people: Cast, item: ReviewItem, holds: str
) -> None:
    if holds == "owns":
        ownership.assign(people.admin, item.pk, to="operator", why="yours")
    else:
        ownership.claim(people.operator, item.pk)
    handed = ownership.hand_over(people.operator, item.pk, to="approver", why="they call back at nine")
    assert (handed.item.owner, handed.item.claimed_by) == (people.approver, people.approver)
    assert handed.item.claim_until is not None
    assert handed.item.claim_until > database_clock()
    assert (handed.event.kind, handed.event.data["owner"]) == (EventKind.HANDED_OVER, "approver")
    assert handed.decision.why == "they call back at nine"
    with pytest.raises(DecisionRefused, match="approver"):
        ownership.claim(people.operator, item.pk)


def test_nobody_hands_over_what_is_not_theirs(people: Cast, item: ReviewItem) -> None:
    with pytest.raises(DecisionRefused, match="neither own nor hold"):
        ownership.hand_over(people.operator, item.pk, to="approver", why="yours")
    ownership.claim(people.approver, item.pk)
    ownership.assign(people.admin, item.pk, to="operator", why="yours")
    with pytest.raises(DecisionRefused, match="approver has claimed"):
        ownership.hand_over(people.operator, item.pk, to="second-operator", why="yours")


@pytest.mark.parametrize(
    "to", ["stranger", "superuser", "inactive", "viewer", "admin", "nobody", "#Review desk"]
)
def test_nothing_is_handed_to_somebody_who_decides_nothing_there(
    people: Cast, item: ReviewItem, to: str
) -> None:
    ownership.claim(people.operator, item.pk)
    with pytest.raises(UnknownAssignee):
        ownership.hand_over(people.operator, item.pk, to=to, why="yours")


class TestSnoozing:
    def test_it_is_away_until_then_and_stays_due(self, people: Cast, item: ReviewItem) -> None:
        due_at = item.due_at
        snoozed = ownership.snooze(people.operator, item.pk, until=HOUR, why="they open at nine").item
        assert snoozed.snoozed_until is not None
        assert timedelta(minutes=59) < snoozed.snoozed_until - database_clock() <= HOUR
        assert snoozed.due_at == due_at

    def test_it_is_woken_once(self, people: Cast, item: ReviewItem) -> None:
        ownership.snooze(people.operator, item.pk, until=HOUR, why="later")
        assert ownership.wake(people.second_operator, item.pk).item.snoozed_until is None
        with pytest.raises(DecisionRefused, match="not snoozed"):
            ownership.wake(people.operator, item.pk)

    def test_a_new_reason_wakes_it(self, people: Cast, item: ReviewItem) -> None:
        ownership.snooze(people.operator, item.pk, until=HOUR, why="later")
        make.looked_up(make.fresh(item.attempt), LookedUpKind.NO_LOOKUP)
        item.refresh_from_db()
        assert (item.reason, item.snoozed_until) == (ReviewReason.NO_LOOKUP, None)

    @pytest.mark.parametrize("until", [timedelta(0), -HOUR, timedelta(days=15), HOUR * 24 * 400])
    def test_never_for_ever_and_never_for_nothing(
        self, people: Cast, item: ReviewItem, until: timedelta
    ) -> None:
        with pytest.raises(DecisionRefused, match="within 14 days"):
            ownership.snooze(people.operator, item.pk, until=until, why="later")

    def test_what_another_holds_is_not_snoozed(self, people: Cast, item: ReviewItem) -> None:
        ownership.claim(people.operator, item.pk)
        with pytest.raises(DecisionRefused, match="operator has claimed"):
            ownership.snooze(people.second_operator, item.pk, until=HOUR, why="later")


class TestWaiting:
    def test_it_is_said_and_taken_back(self, people: Cast, item: ReviewItem) -> None:
        address = "https://support.example/t/7"
        said = ownership.wait_on(people.operator, item.pk, what="their support", url=address)
        assert (said.item.waiting_on, said.item.waiting_on_url) == ("their support", address)
        assert said.event.data["on"] == "their support"
        taken_back = ownership.wait_on(people.operator, item.pk, what="", url=address, why="they answered")
        assert (taken_back.item.waiting_on, taken_back.item.waiting_on_url) == ("", "")

    @pytest.mark.parametrize(
        "url", ["http://support.example/", "javascript:alert(1)", "https://a@b.example/", "//x", "https://"]
    )
    def test_an_address_is_plain_https(self, people: Cast, item: ReviewItem, url: str) -> None:
        with pytest.raises(BadAddress):
            ownership.wait_on(people.operator, item.pk, what="their support", url=url)
        item.refresh_from_db()
        assert item.waiting_on == ""


def test_notes_are_kept_on_closed_items_too(people: Cast) -> None:
    attempt = make.for_a_person(people.key)
    item = make.item_of(attempt)
    make.reported(people.key, attempt, "succeeded", result_ref="re_1")
    noted = ownership.note(people.admin, item.pk, why="the provider confirmed by phone")
    assert noted.item.closed_at is not None
    assert noted.decision.why == "the provider confirmed by phone"
    with pytest.raises(DecisionRefused):
        ownership.claim(people.operator, item.pk)
