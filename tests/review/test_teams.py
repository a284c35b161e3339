"""Teams: made, renamed and filled by administrators, and who did it is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from ledger.models import ReviewGroup, User
from review import ownership, teams
from review.door import NotPermitted, NotVisible
from review.queries.teams import team_page, teams_page
from review.teams import TeamRefused
from tests.review.teams import team
from tests.support import make
from tests.support.cast import Cast

Press = Callable[[User, int], object]
PRESSES: dict[str, Press] = {
    "create": lambda user, _team: teams.create(user, "acme", name="Legal"),
    "rename": lambda user, team_id: teams.rename(user, team_id, name="Legal"),
    "add": lambda user, team_id: teams.add_member(user, team_id, username="approver"),
    "remove": lambda user, team_id: teams.remove_member(user, team_id, username="operator"),
}


@pytest.fixture
def payments(people: Cast) -> ReviewGroup:
    return team(people, "Payments", people.operator)


@pytest.mark.parametrize("press", PRESSES.values(), ids=PRESSES.keys())
def test_administrators_only(people: Cast, payments: ReviewGroup, press: Press) -> None:
    for user in people.blind:
        with pytest.raises(NotVisible):
            press(user, payments.pk)
    for user in (people.viewer, people.operator, people.approver, people.auditor):
        with pytest.raises(NotPermitted, match="administer in Acme"):
            press(user, payments.pk)
    before = team_page(people.viewer, payments.pk)
    press(people.admin, payments.pk)
    assert teams_page(people.viewer).rows != (before.row,)


def test_every_change_is_kept_with_who(people: Cast, payments: ReviewGroup) -> None:
    teams.add_member(people.admin, payments.pk, username="approver")
    teams.rename(people.admin, payments.pk, name="Refunds")
    teams.remove_member(people.admin, payments.pk, username="operator")
    page = team_page(people.auditor, payments.pk)
    assert page.row.name == "Refunds"
    assert [member.username for member in page.members] == ["approver"]
    assert [(change.by, change.what) for change in reversed(page.changes)] == [
        ("admin", "created"),
        ("admin", "operator added"),
        ("admin", "approver added"),
        ("admin", "renamed from “Payments” to “Refunds”"),
        ("admin", "operator taken out"),
    ]
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE review_teamchange SET what = 'x'")


@pytest.mark.parametrize("name", ["", " Legal", "a\nb", "x" * 101, "Payments", "Review desk"])
def test_a_name_is_seen_whole_and_once(people: Cast, payments: ReviewGroup, name: str) -> None:
    for press in (
        lambda: teams.create(people.admin, "acme", name=name),
        lambda: teams.rename(people.admin, payments.pk, name=name),
    ):
        with pytest.raises(TeamRefused) as refused:
            press()
        assert refused.value.field == "name"


@pytest.mark.parametrize(
    "username", ["stranger", "superuser", "inactive", "viewer", "admin", "nobody", "operator"]
)
def test_nobody_joins_who_decides_nothing_there_or_is_in(
    people: Cast, payments: ReviewGroup, username: str
) -> None:
    with pytest.raises(TeamRefused) as refused:
        teams.add_member(people.admin, payments.pk, username=username)
    assert refused.value.field == "username"


def test_the_first_team_keeps_somebody_who_decides(people: Cast) -> None:
    first = ReviewGroup.objects.get(tenant=people.tenant, is_first_owner=True)
    first.members.set([people.operator, people.viewer, people.inactive])
    with pytest.raises(TeamRefused, match="nobody would be left"):
        teams.remove_member(people.admin, first.pk, username="operator")
    teams.remove_member(people.admin, first.pk, username="viewer")
    teams.add_member(people.admin, first.pk, username="approver")
    teams.remove_member(people.admin, first.pk, username="operator")
    assert team_page(people.viewer, first.pk).can_act


@pytest.mark.parametrize("team_id", [0, -1, 2**63, 2**200])
def test_an_unknown_team_is_not_visible(people: Cast, team_id: int) -> None:
    with pytest.raises(NotVisible):
        team_page(people.admin, team_id)


def test_pages_count_what_is_open_with_the_same_queries(people: Cast, payments: ReviewGroup) -> None:
    item = make.item_of(make.unknown(people.key))
    ownership.assign(people.admin, item.pk, to="#Payments", why="yours")
    assert team_page(people.viewer, payments.pk).row.open_items == 1

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            rows = teams_page(people.viewer).rows
        assert {row.tenant.slug for row in rows} == {"acme"}
        return len(captured)

    few = queries()
    for name in ("Legal", "Mail", "Deploys"):
        team(people, name, people.approver)
    assert queries() == few
