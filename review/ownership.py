"""Whose an item is: claim, release, take over, assign, note. It decides nothing about the attempt.

Each raises what `review.decisions` raises.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from ledger import lifecycle
from ledger.lifecycle import Decided
from ledger.models import ReviewGroup, Tenant, User
from ledger.transactions import database_clock, durable
from review.decisions import as_decider
from review.door import enter_to_write, missing_right, require_decider
from review.rights import may_decide

CLAIM_LASTS = timedelta(minutes=15)


class UnknownAssignee(ValueError):
    """No such person or group can own work of this tenant; says nothing about other tenants."""


def claim(user: User, item_id: str) -> Decided:
    """Hold the item for 15 minutes; claiming again while it is one's own extends that."""
    return as_decider(user, item_id, lambda: lifecycle.claim(item_id=item_id, by=user, until=_claim_end()))


def release(user: User, item_id: str) -> Decided:
    """Give one's claim back."""
    return as_decider(user, item_id, lambda: lifecycle.release(item_id=item_id, by=user))


def take_over(user: User, item_id: str, *, why: str) -> Decided:
    """Take the claim from whoever holds it; the decision names the displaced."""
    return as_decider(
        user,
        item_id,
        lambda: lifecycle.take_over(item_id=item_id, by=user, until=_claim_end(), why=why),
    )


def assign(user: User, item_id: str, *, to: str, why: str) -> Decided:
    """Give the item to a person (`name`) or a group (`#name`) of its tenant.

    Takes an administrator; who decides work may assign to themselves and to their own groups.
    """

    def work() -> Decided:
        entry = enter_to_write(user, item_id)
        person, group = _assignee(entry.tenant, to)
        if not (entry.rights.administer or (entry.rights.decide and _is_own(user, person, group))):
            raise missing_right(entry.tenant, "administer")
        return lifecycle.assign(item_id=item_id, by=user, to_user=person, to_group=group, why=why)

    return durable(work)


def note(user: User, item_id: str, *, why: str) -> Decided:
    """Leave a note on the item."""

    def work() -> Decided:
        entry = enter_to_write(user, item_id)
        if not entry.rights.administer:
            require_decider(entry.tenant, entry.rights)
        return lifecycle.note(item_id=item_id, by=user, why=why)

    return durable(work)


def _claim_end() -> datetime:
    return database_clock() + CLAIM_LASTS


def _assignee(tenant: Tenant, to: str) -> tuple[User | None, ReviewGroup | None]:
    if to.startswith("#"):
        group = ReviewGroup.objects.filter(tenant=tenant, name=to.removeprefix("#")).first()
        if group is None:
            raise UnknownAssignee(f"There is no group {to} in {tenant.name}.")
        return None, group
    person = User.objects.filter(username=to, is_active=True).first()
    if person is None or not may_decide(person, tenant):
        raise UnknownAssignee(f"{to} cannot own work of {tenant.name}: nobody of that name may decide there.")
    return person, None


def _is_own(user: User, person: User | None, group: ReviewGroup | None) -> bool:
    if person is not None:
        return person == user
    return group is not None and group.members.filter(pk=user.pk).exists()
