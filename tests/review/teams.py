"""Teams with somebody in them, and rules of ownership in force."""

from __future__ import annotations

from ledger.models import ReviewGroup, User
from review import ownership_rules, teams
from review.ownership_rules import TypedRule
from review.reach import Reach
from tests.support.cast import Cast


def team(people: Cast, name: str, *members: User) -> ReviewGroup:
    """A team of the tenant, made by its administrator."""
    team_id = teams.create(people.admin, people.tenant.slug, name=name)
    for member in members:
        teams.add_member(people.admin, team_id, username=member.get_username())
    return ReviewGroup.objects.get(pk=team_id)


def in_force(people: Cast, *rules: TypedRule, based_on: int = 0, reach: Reach = Reach.NEW) -> int:
    """These rules, saved by the administrator; the number of the version."""
    return ownership_rules.save_rules(
        people.admin, people.tenant.slug, rules, based_on=based_on, reach=reach, why="as agreed"
    )
