"""Whose an item is: claimed, released, taken over, assigned, noted. Deciding never follows from it."""

from __future__ import annotations

from datetime import datetime

from ledger.lifecycle.deciding import Desk, at_the_desk, check_claim, check_open, refuse_unless
from ledger.lifecycle.values import Decided
from ledger.models import ReviewGroup, User
from ledger.rules.vocabulary import DecisionKind, EventKind


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
        item.save(update_fields=["owner", "owner_group"])
        named = {"owner": to_user.get_username() if to_user else None, "group": item.owner_group.name}
        return desk.record(DecisionKind.ASSIGN, why, event=EventKind.ASSIGNED, **named)


def note(*, item_id: str, by: User, why: str) -> Decided:
    """Write something down for whoever reads this next; on closed items too."""
    with at_the_desk(item_id, by, ownership=True) as desk:
        return desk.record(DecisionKind.NOTE, why, event=EventKind.NOTED)


def _set_claim(desk: Desk, person: User | None, until: datetime | None) -> None:
    desk.item.claimed_by, desk.item.claim_until = person, until
    desk.item.save(update_fields=["claimed_by", "claim_until"])
