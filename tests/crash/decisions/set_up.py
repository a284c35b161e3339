"""What administrators say about whose which work is: rules of ownership, teams."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.models import Decision, ReviewGroup, ReviewItem
from ledger.rules.vocabulary import DecisionKind
from review import decisions, ownership_rules, teams
from review.models import OwnershipVersion, TeamChange
from review.ownership_rules import TypedRule
from review.reach import Reach
from tests.crash.decisions.case import SLUG, WHY, About, Case, sent, who
from tests.support.cast import Cast


def rules(_: Cast, number: int) -> About:
    based_on = OwnershipVersion.objects.filter(tenant__slug=SLUG).count()
    owner = ("operator", "approver")[number % 2]
    return {"based_on": based_on, "owner": owner, "name": f"team-{number}"}


def rules_that_move(people: Cast, number: int) -> About:
    """Saved, and not asked yet about the one item that is open."""
    for earlier in ReviewItem.objects.filter(tenant=people.tenant, closed_at=None):
        decisions.confirm_did_not_happen(people.operator, earlier.pk, why=WHY)
    about = {**sent(people, number), **rules(people, number)}
    _save_rules(about)
    return about


def a_team(people: Cast, number: int) -> About:
    team_id = teams.create(people.admin, SLUG, name=f"team-{number}")
    teams.add_member(people.admin, team_id, username="approver")
    return {"team": team_id, "name": f"renamed-{number}"}


def _save_rules(about: About) -> int:
    typed = [TypedRule("*", owner=about["owner"])]
    return ownership_rules.save_rules(
        who("admin"), SLUG, typed, based_on=about["based_on"], reach=Reach.ALL, why=WHY
    )


SETUP: Mapping[str, Case] = {
    "save rules": Case(
        rules,
        _save_rules,
        lambda a: OwnershipVersion.objects.filter(version=a["based_on"] + 1).count(),
    ),
    "apply rules": Case(
        rules_that_move,
        lambda _: ownership_rules.apply_rules(who("admin"), SLUG, reach=Reach.ALL, why=WHY),
        lambda a: Decision.objects.filter(item_id=a["item"], kind=DecisionKind.ASSIGN, why=WHY).count(),
    ),
    "create a team": Case(
        rules,
        lambda a: teams.create(who("admin"), SLUG, name=a["name"]),
        lambda a: ReviewGroup.objects.filter(name=a["name"]).count(),
    ),
    "rename a team": Case(
        a_team,
        lambda a: teams.rename(who("admin"), a["team"], name=a["name"]),
        lambda a: TeamChange.objects.filter(team_id=a["team"], what__startswith="renamed").count(),
    ),
    "add a member": Case(
        a_team,
        lambda a: teams.add_member(who("admin"), a["team"], username="operator"),
        lambda a: TeamChange.objects.filter(team_id=a["team"], what="operator added").count(),
    ),
    "take a member out": Case(
        a_team,
        lambda a: teams.remove_member(who("admin"), a["team"], username="approver"),
        lambda a: TeamChange.objects.filter(team_id=a["team"], what="approver taken out").count(),
    ),
}
