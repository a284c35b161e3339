"""Whose an item is: claim, release, take over, hand over, assign, snooze, what it waits on, note. It decides
nothing about the attempt.

Each raises what `review.decisions` raises.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from ledger import lifecycle
from ledger.lifecycle import Decided
from ledger.models import ReviewGroup, Tenant, User
from ledger.rules.names import url_problem
from ledger.transactions import database_clock, durable
from review.decisions import as_decider
from review.door import enter, enter_to_write, missing_right, require_decider
from review.rights import may_decide

CLAIM_LASTS = timedelta(minutes=15)


class UnknownAssignee(ValueError):
    """No such person or group can own work of this tenant; says nothing about other tenants."""


class BadAddress(ValueError):
    """What an item waits on is not shown under such an address."""


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
        person, group = assignee_of(entry.tenant, to)
        if not (entry.rights.administer or (entry.rights.decide and _is_own(user, person, group))):
            raise missing_right(entry.tenant, "administer")
        return lifecycle.assign(item_id=item_id, by=user, to_user=person, to_group=group, why=why)

    return durable(work)


def hand_over(user: User, item_id: str, *, to: str, why: str) -> Decided:
    """Give what one owns or holds to a colleague who decides work there, with a claim of 15 minutes.

    Raises `UnknownAssignee` besides.
    """

    def work() -> Decided:
        person = _decider(enter(user, item_id).tenant, to)
        return lifecycle.hand_over(item_id=item_id, by=user, to=person, until=_claim_end(), why=why)

    return as_decider(user, item_id, work)


def snooze(user: User, item_id: str, *, until: datetime | timedelta, why: str) -> Decided:
    """Take it off the active lists until then, or for so long."""

    def work() -> Decided:
        end = until if isinstance(until, datetime) else database_clock() + until
        return lifecycle.snooze(item_id=item_id, by=user, until=end, why=why)

    return as_decider(user, item_id, work)


def wake(user: User, item_id: str) -> Decided:
    """Put it back on the active lists now."""
    return as_decider(user, item_id, lambda: lifecycle.wake(item_id=item_id, by=user))


def wait_on(user: User, item_id: str, *, what: str, url: str = "", why: str = "") -> Decided:
    """Say whom or what it waits on, for everybody to see; nothing said takes it back.

    Raises `BadAddress` for an address that is not plain https.
    """
    problem = url_problem(url, https_only=True) if url else None
    if problem is not None:
        raise BadAddress(f"This address cannot be shown: {problem}.")
    return as_decider(
        user,
        item_id,
        lambda: lifecycle.wait_on(item_id=item_id, by=user, what=what, url=url, why=why or what),
    )


def note(user: User, item_id: str, *, why: str) -> Decided:
    """Leave a note on the item."""

    def work() -> Decided:
        entry = enter_to_write(user, item_id)
        if not entry.rights.administer:
            require_decider(entry.tenant, entry.rights)
        return lifecycle.note(item_id=item_id, by=user, why=why)

    return durable(work)


def assignee_of(tenant: Tenant, to: str) -> tuple[User | None, ReviewGroup | None]:
    """Who is meant by a user name or `#group name`, one of both. Raises `UnknownAssignee`."""
    if not to.startswith("#"):
        return _decider(tenant, to), None
    group = ReviewGroup.objects.filter(tenant=tenant, name=nameable(to.removeprefix("#"))).first()
    if group is None:
        raise UnknownAssignee(f"There is no group {to} in {tenant.name}.")
    return None, group


def nameable(typed: str) -> str:
    """What was typed as a name; nothing, which names nobody, where it could not even be looked for."""
    return typed if typed.isprintable() else ""


def _claim_end() -> datetime:
    return database_clock() + CLAIM_LASTS


def _decider(tenant: Tenant, name: str) -> User:
    person = User.objects.filter(username=nameable(name), is_active=True).first()
    if person is None or not may_decide(person, tenant):
        raise UnknownAssignee(
            f"{name} cannot own work of {tenant.name}: nobody of that name may decide there."
        )
    return person


def _is_own(user: User, person: User | None, group: ReviewGroup | None) -> bool:
    if person is not None:
        return person == user
    return group is not None and group.members.filter(pk=user.pk).exists()
