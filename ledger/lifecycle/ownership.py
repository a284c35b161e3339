"""Whose an item is: claimed, released, taken over, handed over, assigned, snoozed, noted. Deciding never
follows from it."""

from __future__ import annotations

from datetime import datetime, timedelta

from ledger.lifecycle import items
from ledger.lifecycle.deciding import Desk, at_the_desk, check_claim, check_open, refuse_unless
from ledger.lifecycle.values import Decided
from ledger.models import ReviewGroup, User
from ledger.rules.vocabulary import DecisionKind, EventKind, ReviewReason

LONGEST_SNOOZE = timedelta(days=14)


def claim(*, item_id: str, by: User, until: datetime) -> Decided:
    """Work on an item, shown to others until `until`; again by the same person moves the end."""
    with at_the_desk(item_id, by, ownership=True) as desk:
        check_open(desk)
        check_claim(desk)
        _set_claim(desk, by, until)
        return desk.record(DecisionKind.CLAIM, "", event=EventKind.CLAIMED, until=until.isoformat())


def release(*, item_id: str, by: User) -> Decided:
    """Give a claim of one's own back."""
    with at_the_desk(item_id, by, ownership=True) as desk:
        check_open(desk)
        refuse_unless(desk.item.claimed_by_id == by.pk, "not-claimed", "You have not claimed this item.")
        _set_claim(desk, None, None)
        return desk.record(DecisionKind.RELEASE, "", event=EventKind.RELEASED)


def take_over(*, item_id: str, by: User, until: datetime, why: str) -> Decided:
    """Claim an item although another person has; the record names the displaced."""
    with at_the_desk(item_id, by, ownership=True) as desk:
        check_open(desk)
        displaced = desk.item.claimed_by
        refuse_unless(
            displaced is not None and displaced.pk != by.pk,
            "not-claimed",
            "Nobody else has claimed this item.",
        )
        name = displaced.get_username() if displaced else ""
        _set_claim(desk, by, until)
        return desk.record(
            DecisionKind.TAKE_OVER, why, event=EventKind.TAKEN_OVER, displaced=name, until=until.isoformat()
        )


def assign(
    *, item_id: str, by: User, to_user: User | None = None, to_group: ReviewGroup | None = None, why: str
) -> Decided:
    """Make a person, or a group of the tenant, the owner. Assigned to a group, it is nobody's in
    particular."""
    with at_the_desk(item_id, by, ownership=True) as desk:
        check_open(desk)
        refuse_unless(
            to_user is not None or to_group is not None, "owner-required", "Name a person or a group."
        )
        item = desk.item
        item.owner = to_user
        item.owner_group = to_group or item.owner_group
        item.owner_chosen = True
        item.save(update_fields=["owner", "owner_group", "owner_chosen"])
        named = {"owner": to_user.get_username() if to_user else None, "group": item.owner_group.name}
        return desk.record(DecisionKind.ASSIGN, why, event=EventKind.ASSIGNED, **named)


def assign_by_rules(*, item_id: str, by: User, was: tuple[int, int | None], why: str) -> Decided:
    """Give an open item to whom the rules of ownership name now; `was`: the team and the person it had when
    somebody decided to ask them."""
    with at_the_desk(item_id, by, ownership=True) as desk:
        check_open(desk)
        item, owned = desk.item, items.owner_by_rules(desk.attempt, ReviewReason(desk.item.reason))
        now_has = (item.owner_group_id, item.owner_id)
        refuse_unless(now_has == was, "owner-changed", "Somebody gave it to another owner meanwhile.")
        refuse_unless(now_has != (owned.team, owned.person), "same-owner", "It is theirs already.")
        return desk.record(DecisionKind.ASSIGN, why, event=EventKind.ASSIGNED, **items.own(item, owned))


def hand_over(*, item_id: str, by: User, to: User, until: datetime, why: str) -> Decided:
    """Give what one owns or holds to a colleague: theirs from now on, claimed for them until `until`."""
    with at_the_desk(item_id, by, ownership=True) as desk:
        check_open(desk)
        check_claim(desk)
        refuse_unless(
            _is_theirs(desk), "not-yours", "You neither own nor hold this item: assign or claim it."
        )
        refuse_unless(to.pk != by.pk, "same-person", "It is yours already.")
        desk.item.owner, desk.item.owner_chosen = to, True
        desk.item.save(update_fields=["owner", "owner_chosen"])
        _set_claim(desk, to, until)
        return desk.record(
            DecisionKind.HAND_OVER,
            why,
            event=EventKind.HANDED_OVER,
            owner=to.get_username(),
            until=until.isoformat(),
        )


def snooze(*, item_id: str, by: User, until: datetime, why: str) -> Decided:
    """Take an item off the active lists until then. It comes back by itself, and with any new reason."""
    with at_the_desk(item_id, by, ownership=True) as desk:
        check_open(desk)
        check_claim(desk)
        now = desk.case.now
        refuse_unless(
            now < until <= now + LONGEST_SNOOZE,
            "bad-time",
            f"A snooze ends in the future, within {LONGEST_SNOOZE.days} days.",
        )
        _set_snooze(desk, until)
        return desk.record(DecisionKind.SNOOZE, why, event=EventKind.SNOOZED, until=until.isoformat())


def wake(*, item_id: str, by: User) -> Decided:
    """Put a snoozed item back on the active lists now."""
    with at_the_desk(item_id, by, ownership=True) as desk:
        check_open(desk)
        until = desk.item.snoozed_until
        refuse_unless(until is not None and desk.case.now < until, "not-snoozed", "This item is not snoozed.")
        _set_snooze(desk, None)
        return desk.record(DecisionKind.WAKE, "", event=EventKind.WOKEN)


def wait_on(*, item_id: str, by: User, what: str, url: str, why: str) -> Decided:
    """Say whom or what this waits for, perhaps with an address; nothing said: it waits for nobody."""
    with at_the_desk(item_id, by, ownership=True) as desk:
        check_open(desk)
        check_claim(desk)
        desk.item.waiting_on, desk.item.waiting_on_url = what, url if what else ""
        desk.item.save(update_fields=["waiting_on", "waiting_on_url"])
        said = {"on": what, "url": desk.item.waiting_on_url}
        return desk.record(DecisionKind.WAIT_ON, why, event=EventKind.WAITS_ON, **said)


def note(*, item_id: str, by: User, why: str) -> Decided:
    """Write something down for whoever reads this next; on closed items too."""
    with at_the_desk(item_id, by, ownership=True) as desk:
        return desk.record(DecisionKind.NOTE, why, event=EventKind.NOTED)


def _set_claim(desk: Desk, person: User | None, until: datetime | None) -> None:
    desk.item.claimed_by, desk.item.claim_until = person, until
    desk.item.save(update_fields=["claimed_by", "claim_until"])


def _set_snooze(desk: Desk, until: datetime | None) -> None:
    desk.item.snoozed_until = until
    desk.item.save(update_fields=["snoozed_until"])


def _is_theirs(desk: Desk) -> bool:
    """Does the person at the desk own the item, or hold a claim that still lives?"""
    item = desk.item
    claimed = item.claim_until is not None and desk.case.now < item.claim_until
    return item.owner_id == desk.by.pk or (claimed and item.claimed_by_id == desk.by.pk)
