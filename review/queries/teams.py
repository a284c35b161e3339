"""The teams of the tenants a person sees: who is in them, what they own, what was done to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from ledger.models import ReviewGroup, ReviewItem, User
from ledger.transactions import database_clock
from review.models import TeamChange
from review.owners import deciders
from review.queries.page import AssigneeView
from review.queries.tenants import tenant_view, tenants_of, tenants_where
from review.queries.values import TenantView
from review.teams import enter_team

NEWEST_CHANGES = 100
MOST_TEAMS = 200


@dataclass(frozen=True)
class MemberView:
    """One member; who is inactive or decides nothing there any more cannot act for the team."""

    username: str
    can_act: bool


@dataclass(frozen=True)
class TeamRow:
    """One team. `is_first`: it owns from birth what nobody else does."""

    team_id: int
    name: str
    tenant: TenantView
    is_first: bool
    members: int
    open_items: int


@dataclass(frozen=True)
class TeamsPage:
    """At most 200 teams, by tenant and name. `may_add_to`: where this person administers."""

    rows: tuple[TeamRow, ...]
    tenants: tuple[TenantView, ...]
    may_add_to: tuple[TenantView, ...]
    as_of: datetime


@dataclass(frozen=True)
class TeamChangeView:
    """One line of what was done to a team."""

    at: datetime
    by: str
    what: str


@dataclass(frozen=True)
class TeamPage:
    """One team. `candidates`: who could join."""

    row: TeamRow
    members: tuple[MemberView, ...]
    candidates: tuple[AssigneeView, ...]
    changes: tuple[TeamChangeView, ...]
    may_administer: bool
    as_of: datetime

    @property
    def can_act(self) -> bool:
        """Is there anybody in it who decides work?"""
        return any(member.can_act for member in self.members)


def teams_page(user: User) -> TeamsPage:
    """Every team this person may see; queries do not grow with teams."""
    tenants = tenants_of(user)
    administered = tenants_where(user, "administer")
    teams = _counted(ReviewGroup.objects.filter(tenant__in=[tenant.id for tenant in tenants]))
    by_name = teams.order_by("tenant__name", "-is_first_owner", "name")
    return TeamsPage(
        rows=tuple(_row(team) for team in by_name[:MOST_TEAMS]),
        tenants=tenants,
        may_add_to=tuple(tenant for tenant in tenants if tenant.id in administered),
        as_of=database_clock(),
    )


def team_page(user: User, team_id: int) -> TeamPage:
    """Everything about one team. Raises `NotVisible`."""
    found, may_administer = enter_team(user, team_id)
    team = _counted(ReviewGroup.objects.filter(pk=found.pk)).get()
    able = list(deciders(team.tenant_id).order_by("username"))
    members = list(team.members.order_by("username"))
    changes = TeamChange.objects.filter(team=team).select_related("by").order_by("-at", "-pk")
    return TeamPage(
        row=_row(team),
        members=tuple(MemberView(person.get_username(), person in able) for person in members),
        candidates=tuple(
            AssigneeView(person.get_username(), person.get_username())
            for person in able
            if person not in members
        ),
        changes=tuple(
            TeamChangeView(change.at, change.by.get_username(), change.what)
            for change in changes[:NEWEST_CHANGES]
        ),
        may_administer=may_administer,
        as_of=database_clock(),
    )


def _counted(teams: QuerySet[ReviewGroup]) -> QuerySet[ReviewGroup]:
    owned = ReviewItem.objects.filter(owner_group=OuterRef("pk"), closed_at__isnull=True)
    open_items = owned.order_by().values("owner_group").annotate(number=Count("pk")).values("number")
    return teams.select_related("tenant").annotate(
        members_count=Count("members"), open_items=Coalesce(Subquery(open_items), 0)
    )


def _row(team: ReviewGroup) -> TeamRow:
    read = vars(team)
    return TeamRow(
        team_id=team.pk,
        name=team.name,
        tenant=tenant_view(team.tenant),
        is_first=team.is_first_owner,
        members=read["members_count"],
        open_items=read["open_items"],
    )
