"""Teams: created, renamed, their members. Administrators only; who did what is kept.

Each raises `NotVisible`, `NotPermitted` and `TeamRefused`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import IntegrityError

from ledger.models import ReviewGroup, Tenant, User
from ledger.rules.names import name_problem
from ledger.transactions import database_clock, durable
from review.door import NotVisible, enter_row, enter_tenant_to_write, require_administrator
from review.models import TeamChange
from review.owners import deciders
from review.ownership import nameable
from review.rights import may_decide

T = TypeVar("T")

LARGEST_ID = 2**63 - 1


class TeamRefused(Exception):
    """It cannot be done as the team stands, or as it was asked for; `field` says which part, if one."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def create(user: User, slug: str, *, name: str) -> int:
    """A new team, with nobody in it. Returns its id."""

    def work() -> int:
        tenant, rights = enter_tenant_to_write(user, slug)
        require_administrator(tenant, rights)
        _check_name(tenant, name)
        team = ReviewGroup.objects.create(tenant=tenant, name=name)
        _record(team, user, "created")
        return team.pk

    return _once_named(name, work)


def rename(user: User, team_id: int, *, name: str) -> None:
    """Rules and items follow: they know it by its id."""

    def work() -> None:
        team = _administered(user, team_id)
        if team.name == name:
            raise TeamRefused("That is its name already.", field="name")
        _check_name(team.tenant, name)
        before, team.name = team.name, name
        team.save(update_fields=["name"])
        _record(team, user, f"renamed from “{before}” to “{name}”")

    _once_named(name, work)


def add_member(user: User, team_id: int, *, username: str) -> None:
    """Somebody active who decides work of the tenant."""

    def work() -> None:
        team = _administered(user, team_id)
        person = User.objects.filter(username=nameable(username), is_active=True).first()
        if person is None or not may_decide(person, team.tenant):
            raise TeamRefused(
                f"{username} cannot join: nobody of that name may decide work of {team.tenant.name}.",
                field="username",
            )
        if team.members.filter(pk=person.pk).exists():
            raise TeamRefused(f"{username} is a member already.", field="username")
        team.members.add(person)
        _record(team, user, f"{username} added")

    durable(work)


def remove_member(user: User, team_id: int, *, username: str) -> None:
    """What this person owns stays theirs. The first team keeps somebody."""

    def work() -> None:
        team = _administered(user, team_id)
        person = team.members.filter(username=nameable(username)).first()
        if person is None:
            raise TeamRefused(f"{username} is no member.")
        others = deciders(team.tenant_id).filter(review_groups=team).exclude(pk=person.pk)
        if team.is_first_owner and not others.exists():
            raise TeamRefused(
                "The first team owns what nobody else does, and nobody would be left: add somebody first."
            )
        team.members.remove(person)
        _record(team, user, f"{username} taken out")

    durable(work)


def enter_team(user: User, team_id: int) -> tuple[ReviewGroup, bool]:
    """The team, if this person may see its tenant, and whether they administer it. Raises `NotVisible`."""
    if not 0 < team_id <= LARGEST_ID:
        raise NotVisible(str(team_id))
    found = ReviewGroup.objects.select_related("tenant").filter(pk=team_id).first()
    team, rights = enter_row(user, found, str(team_id))
    return team, rights.administer


def _administered(user: User, team_id: int) -> ReviewGroup:
    """The team under lock, so that its changes come one after the other."""
    found, _ = enter_team(user, team_id)
    require_administrator(*enter_tenant_to_write(user, found.tenant.slug))
    return ReviewGroup.objects.select_related("tenant").select_for_update(of=("self",)).get(pk=team_id)


def _check_name(tenant: Tenant, name: str) -> None:
    problem = name_problem(name)
    if problem:
        raise TeamRefused(f"{name!r} cannot be a name: {problem}.", field="name")
    if ReviewGroup.objects.filter(tenant=tenant, name=name).exists():
        raise _taken(name)


def _once_named(name: str, work: Callable[[], T]) -> T:
    try:
        return durable(work)
    except IntegrityError:
        raise _taken(name) from None


def _taken(name: str) -> TeamRefused:
    return TeamRefused(f"There is a team {name} already.", field="name")


def _record(team: ReviewGroup, by: User, what: str) -> None:
    TeamChange.objects.create(tenant_id=team.tenant_id, team=team, what=what, by=by, at=database_clock())
