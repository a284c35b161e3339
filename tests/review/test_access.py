"""Rights are given and taken by administrators, with everything that hangs on them, and each change stays on
record."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import DatabaseError, connection, transaction

from ledger.lifecycle import LeaveGiven, LeaveRefused
from ledger.models import AccessChange, Event, User
from ledger.rules.states import State
from ledger.rules.vocabulary import AccessChangeKind, Effect, EventKind
from ledger.rules.voiding import VoidCause
from ledger.transactions import database_clock, durable
from review import access, decisions, ownership
from review.access import AccessRefused
from review.door import NotPermitted, NotVisible
from review.models import ApprovalScope
from review.queries.access import person_page
from review.rights import rights_of
from review.roles import Role, grant_role, roles_of, take_role
from tests.support import make
from tests.support.cast import Cast, person

pytestmark = pytest.mark.django_db

WHY = "moved to another team"
Change = Callable[[Cast, User], object]


def taking(role: Role) -> Change:
    return lambda people, by: access.take_role_away(by, "acme", people.approver.pk, role=role, why=WHY)


CHANGES: dict[str, Change] = {
    "give a role": lambda people, by: access.give_role(
        by, "acme", people.viewer.pk, role=Role.OPERATOR, why=WHY
    ),
    "add a person": lambda _people, by: access.add_person(
        by, "acme", username="stranger", role=Role.VIEWER, why=WHY
    ),
    "take a role": taking(Role.OPERATOR),
    "give a scope": lambda people, by: access.give_scope(
        by, "acme", people.operator.pk, tool_glob="email.*", effects=(Effect.MESSAGE,), why=WHY
    ),
    "take a scope": lambda people, by: access.take_scope_away(
        by, "acme", people.approver.pk, scope_id=every_tool(people).pk, why=WHY
    ),
    "switch off": lambda people, by: access.switch_off(by, "acme", people.operator.pk, why=WHY),
    "switch on": lambda people, by: access.switch_on(by, "acme", people.inactive.pk, why=WHY),
}


def every_tool(people: Cast) -> ApprovalScope:
    return ApprovalScope.objects.get(tenant=people.tenant, tool_glob="*")


def kinds_of_changes() -> list[str]:
    return list(AccessChange.objects.filter(by__isnull=False).order_by("pk").values_list("kind", flat=True))


@pytest.mark.parametrize("change", CHANGES)
def test_an_administrator_changes_access_and_it_stays_on_record(people: Cast, change: str) -> None:
    CHANGES[change](people, people.admin)
    line = AccessChange.objects.get(by=people.admin)
    assert (line.tenant, line.why) == (people.tenant, WHY)
    assert line.person is not None


@pytest.mark.parametrize("change", CHANGES)
def test_nobody_else_changes_anything(people: Cast, change: str) -> None:
    for other in (people.viewer, people.operator, people.approver, people.auditor):
        with pytest.raises(NotPermitted) as refused:
            CHANGES[change](people, other)
        assert "administer" in refused.value.reason
        assert "admin" in refused.value.granted_by
    for blind in people.blind:
        with pytest.raises(NotVisible):
            CHANGES[change](people, blind)
    assert kinds_of_changes() == []


def test_who_is_of_another_tenant_is_not_there(people: Cast) -> None:
    for who in (people.stranger.pk, people.superuser.pk, 0, 2**62):
        with pytest.raises(NotVisible):
            access.give_role(people.admin, "acme", who, role=Role.VIEWER, why=WHY)
        with pytest.raises(NotVisible):
            access.switch_off(people.admin, "acme", who, why=WHY)
    with pytest.raises(AccessRefused, match="Nobody has the user name"):
        access.add_person(people.admin, "acme", username="nobody", role=Role.VIEWER, why=WHY)


@pytest.mark.parametrize("role", list(Role))
def test_nobody_gives_rights_to_themselves(people: Cast, role: Role) -> None:
    with pytest.raises(AccessRefused, match="another administrator"):
        access.give_role(people.admin, "acme", people.admin.pk, role=role, why=WHY)
    grant_role(people.admin, people.tenant, Role.OPERATOR)
    with pytest.raises(AccessRefused, match="another administrator"):
        access.give_scope(people.admin, "acme", people.admin.pk, tool_glob="*", effects=(), why=WHY)
    assert kinds_of_changes() == []


@pytest.mark.parametrize("role", [Role.ADMIN, Role.VIEWER])
def test_the_last_administrator_stays(people: Cast, role: Role) -> None:
    with pytest.raises(AccessRefused, match="last administrator"):
        access.take_role_away(people.admin, "acme", people.admin.pk, role=role, why=WHY)
    with pytest.raises(AccessRefused, match="last administrator"):
        access.switch_off(people.admin, "acme", people.admin.pk, why=WHY)
    person("second", people.tenant, Role.ADMIN)
    access.take_role_away(people.admin, "acme", people.admin.pk, role=role, why=WHY)
    assert not rights_of(people.admin, people.tenant).administer


def test_an_administrator_who_is_switched_off_does_not_count(people: Cast) -> None:
    with pytest.raises(AccessRefused, match="last administrator"):
        access.take_role_away(people.admin, "acme", people.admin.pk, role=Role.ADMIN, why=WHY)


@pytest.mark.parametrize(
    ("role", "left"),
    [
        (Role.VIEWER, ()),
        (Role.OPERATOR, (Role.VIEWER, Role.ADMIN, Role.AUDITOR)),
        (Role.APPROVER, (Role.VIEWER, Role.OPERATOR, Role.ADMIN, Role.AUDITOR)),
        (Role.ADMIN, (Role.VIEWER, Role.OPERATOR, Role.APPROVER, Role.AUDITOR)),
        (Role.AUDITOR, (Role.VIEWER, Role.OPERATOR, Role.APPROVER, Role.ADMIN)),
    ],
)
def test_a_role_goes_with_what_is_nothing_without_it(
    people: Cast, role: Role, left: tuple[Role, ...]
) -> None:
    everything = person("everything", people.tenant, *Role)
    take_role(everything, people.tenant, role)
    assert roles_of(rights_of(everything, people.tenant)) == left
    in_group = everything.review_groups.filter(tenant=people.tenant).exists()
    assert in_group is (Role.OPERATOR in left)


def test_a_right_taken_is_gone_with_the_next_question(people: Cast) -> None:
    item = make.item_of(make.for_a_person(people.key))
    access.take_role_away(people.admin, "acme", people.operator.pk, role=Role.OPERATOR, why=WHY)
    with pytest.raises(NotPermitted):
        decisions.confirm_did_not_happen(people.operator, item.pk, why="looked")
    access.switch_off(people.admin, "acme", people.second_operator.pk, why=WHY)
    with pytest.raises(NotVisible):
        decisions.confirm_did_not_happen(people.second_operator, item.pk, why="looked")


LOSING: dict[str, Change] = {
    "the role": taking(Role.OPERATOR),
    "every role": taking(Role.VIEWER),
    "the account": lambda people, by: access.switch_off(by, "acme", people.approver.pk, why=WHY),
}


@pytest.mark.parametrize("losing", LOSING)
def test_claims_end_items_go_to_the_group_and_votes_are_void(people: Cast, losing: str) -> None:
    claimed = make.for_a_person(people.key)
    owned, voted = make.for_a_person(people.key), make.variant_in_review(people.key)
    ownership.claim(people.approver, make.item_of(claimed).pk)
    ownership.assign(people.approver, make.item_of(owned).pk, to="approver", why="mine")
    decisions.approve(people.approver, make.item_of(voted).pk, why="go")
    LOSING[losing](people, people.admin)

    assert make.item_of(claimed).claimed_by is None
    item = make.item_of(owned)
    assert (item.owner, item.owner_group.tenant) == (None, people.tenant)
    assert voted.votes.get().voided_at is not None
    said = {event.attempt_id: event for event in Event.objects.filter(kind=EventKind.WITHDRAWN)}
    assert set(said) == {claimed.pk, owned.pk, voted.pk}
    assert said[claimed.pk].actor == "admin"
    parts = ("person", "claim", "owner", "votes", "why")
    assert [said[claimed.pk].data[part] for part in parts] == ["approver", True, False, 0, WHY]
    assert [said[owned.pk].data[part] for part in parts] == ["approver", False, True, 0, WHY]
    assert [said[voted.pk].data[part] for part in parts] == ["approver", False, False, 1, WHY]
    line = AccessChange.objects.get(by=people.admin)
    assert {name: line.data[name] for name in ("claims", "items", "votes")} == {
        "claims": 1,
        "items": 1,
        "votes": 1,
    }


def test_a_void_vote_counts_for_nothing_and_the_other_still_does(people: Cast) -> None:
    held = make.variant_in_review(people.key)
    item = make.item_of(held)
    decisions.approve(people.approver, item.pk, why="go")
    access.take_role_away(people.admin, "acme", people.approver.pk, role=Role.APPROVER, why=WHY)
    decisions.approve(people.second_approver, item.pk, why="go")
    assert make.fresh(held).state == State.MANUAL_REVIEW
    third = person("third", people.tenant, Role.APPROVER)
    decisions.approve(third, item.pk, why="go")
    assert make.fresh(held).state == State.INTENT_RECORDED
    assert isinstance(make.ask_leave(people.key, make.fresh(held)), LeaveGiven)


@pytest.mark.parametrize("losing", ["scope", *LOSING])
def test_a_waiting_approval_falls_with_the_right_of_one_who_gave_it(people: Cast, losing: str) -> None:
    held = make.held(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why="go")
    assert make.fresh(held).state == State.INTENT_RECORDED
    change = {"scope": CHANGES["take a scope"], **LOSING}[losing]
    change(people, people.admin)
    approval = held.approvals.get()
    assert approval.void_cause == VoidCause.RIGHT
    assert make.fresh(held).state == State.MANUAL_REVIEW
    assert isinstance(make.ask_leave(people.key, make.fresh(held)), LeaveRefused)


def test_a_vote_that_another_scope_covers_stands(people: Cast) -> None:
    access.give_scope(
        people.admin, "acme", people.approver.pk, tool_glob="deploy.*", effects=(), why="deploys"
    )
    kept, lost = make.held(people.key), make.variant_in_review(people.key)
    for attempt in (kept, lost):
        decisions.approve(people.approver, make.item_of(attempt).pk, why="go")
    access.take_scope_away(people.admin, "acme", people.approver.pk, scope_id=every_tool(people).pk, why=WHY)
    assert (kept.votes.get().voided_at, make.fresh(kept).state) == (None, State.INTENT_RECORDED)
    assert lost.votes.get().voided_at is not None
    with pytest.raises(NotPermitted):
        decisions.approve(people.approver, make.item_of(lost).pk, why="again")


def test_work_of_others_and_of_other_tenants_is_left_alone(people: Cast) -> None:
    mine, theirs = make.for_a_person(people.key), make.for_a_person(people.key)
    ownership.claim(people.second_approver, make.item_of(theirs).pk)
    before = make.fresh(mine).operation.event_count
    taking(Role.VIEWER)(people, people.admin)
    assert make.item_of(theirs).claimed_by == people.second_approver
    assert make.fresh(mine).operation.event_count == before


def test_whoever_works_elsewhere_too_is_not_switched_off_from_here(people: Cast) -> None:
    grant_role(people.operator, people.other_tenant, Role.VIEWER)
    with pytest.raises(AccessRefused, match="where you do not administer"):
        access.switch_off(people.admin, "acme", people.operator.pk, why=WHY)
    grant_role(people.admin, people.other_tenant, Role.ADMIN)
    access.switch_off(people.admin, "acme", people.operator.pk, why=WHY)
    assert not User.objects.get(pk=people.operator.pk).is_active
    assert AccessChange.objects.filter(kind=AccessChangeKind.SWITCHED_OFF).count() == 2


def test_who_is_switched_on_again_has_their_rights_and_none_of_their_votes(people: Cast) -> None:
    held = make.variant_in_review(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why="go")
    before = rights_of(people.approver, people.tenant)
    access.switch_off(people.admin, "acme", people.approver.pk, why=WHY)
    access.switch_on(people.admin, "acme", people.approver.pk, why="back")
    assert rights_of(people.approver, people.tenant) == before
    assert held.votes.get().voided_at is not None


@pytest.mark.parametrize(
    ("again", "words"),
    [
        (
            lambda people: access.give_role(
                people.admin, "acme", people.operator.pk, role=Role.OPERATOR, why=WHY
            ),
            "already",
        ),
        (
            lambda people: access.take_role_away(
                people.admin, "acme", people.viewer.pk, role=Role.AUDITOR, why=WHY
            ),
            "is not auditor",
        ),
        (lambda people: access.switch_on(people.admin, "acme", people.viewer.pk, why=WHY), "already"),
        (lambda people: access.switch_off(people.admin, "acme", people.inactive.pk, why=WHY), "off"),
        (
            lambda people: access.give_role(
                people.admin, "acme", people.inactive.pk, role=Role.VIEWER, why=WHY
            ),
            "off",
        ),
        (
            lambda people: access.give_scope(
                people.admin, "acme", people.viewer.pk, tool_glob="*", effects=(), why=WHY
            ),
            "operator first",
        ),
        (
            lambda people: access.give_scope(
                people.admin, "acme", people.operator.pk, tool_glob="a\x01", effects=(), why=WHY
            ),
            "printable",
        ),
        (
            lambda people: access.give_scope(
                people.admin, "acme", people.approver.pk, tool_glob="*", effects=(), why=WHY
            ),
            "this scope .* already",
        ),
        (
            lambda people: access.take_scope_away(
                people.admin, "acme", people.viewer.pk, scope_id=every_tool(people).pk, why=WHY
            ),
            "no such scope",
        ),
    ],
)
def test_what_changes_nothing_is_refused_in_words(
    people: Cast, again: Callable[[Cast], object], words: str
) -> None:
    with pytest.raises(AccessRefused, match=words):
        again(people)
    assert kinds_of_changes() == []


def test_a_kind_of_change_that_a_newer_process_wrote_is_shown(people: Cast) -> None:
    AccessChange.objects.create(
        tenant=people.tenant, kind="something_new", person=people.viewer, at=database_clock()
    )
    (line,) = person_page(people.admin, "acme", people.viewer.pk).changes
    assert line.words == "Something new"


@pytest.mark.parametrize(
    "statement", ["UPDATE ledger_accesschange SET why = 'x'", "DELETE FROM ledger_accesschange"]
)
def test_the_record_is_never_edited(people: Cast, statement: str) -> None:
    taking(Role.OPERATOR)(people, people.admin)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_votes_of_who_got_into_conflict_fall(people: Cast) -> None:
    held = make.held(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why="go")
    ended = durable(
        lambda: access.end_votes_in_conflict(
            people.admin,
            people.approver,
            people.tenant,
            why=WHY,
            conflict=lambda attempt: attempt.agent_id == people.agent.pk,
        )
    )
    assert ended.votes == 1
    assert make.fresh(held).state == State.MANUAL_REVIEW
