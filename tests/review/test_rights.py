"""Rights are object permissions of active people, asked fresh: nothing else gives any."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission
from guardian.shortcuts import assign_perm, remove_perm

from ledger import approvals
from ledger.models import ReviewGroup, User
from ledger.rules.vocabulary import Effect
from review.door import NotPermitted, missing_right
from review.models import ApprovalScope
from review.queries import tenants_of
from review.rights import NONE, may_administer, may_approve, may_decide, may_view, rights_of
from review.roles import Role, grant_role, grant_scope
from tests.support.cast import Cast, person

EVERYBODY = (
    *("viewer", "operator", "second_operator", "approver", "second_approver", "owner", "admin", "auditor"),
    *("stranger", "superuser", "inactive"),
)
HOLDS = {
    may_view: {
        "viewer",
        "operator",
        "second_operator",
        "approver",
        "second_approver",
        "owner",
        "admin",
        "auditor",
    },
    may_decide: {"operator", "second_operator", "approver", "second_approver", "owner"},
    may_administer: {"admin"},
}


@pytest.mark.parametrize("right", HOLDS, ids=lambda right: right.__name__)
def test_each_right_is_held_by_those_and_no_others(people: Cast, right: object) -> None:
    held = {name for name in EVERYBODY if right(getattr(people, name), people.tenant)}  # type: ignore[operator]
    assert held == HOLDS[right]  # type: ignore[index]


def test_only_approvers_approve(people: Cast) -> None:
    able = {
        name for name in EVERYBODY if may_approve(getattr(people, name), people.tenant, "x", Effect.WRITE)
    }
    assert able == {"approver", "second_approver", "owner"}


def test_neither_the_superuser_flag_nor_groups_nor_global_permissions_give_anything(people: Cast) -> None:
    everything = list(Permission.objects.filter(content_type__model__in=["tenant", "approvalscope"]))
    group = Group.objects.create(name="gods")
    group.permissions.set(everything)
    people.superuser.groups.add(group)
    people.superuser.user_permissions.set(everything)
    people.superuser.is_staff = True
    people.superuser.save()
    assert rights_of(people.superuser, people.tenant) == NONE
    assert tenants_of(people.superuser) == ()


def test_a_right_taken_away_is_gone_with_the_next_question(people: Cast) -> None:
    assert may_approve(people.approver, people.tenant, "x", Effect.WRITE)
    remove_perm("ledger.decide_work", people.approver, people.tenant)
    assert not may_decide(people.approver, people.tenant)
    assert not may_approve(people.approver, people.tenant, "x", Effect.WRITE)


def test_a_person_switched_off_in_the_database_has_no_rights_although_the_session_says_active(
    people: Cast,
) -> None:
    stale = User.objects.get(pk=people.operator.pk)
    User.objects.filter(pk=stale.pk).update(is_active=False)
    assert stale.is_active
    assert rights_of(stale, people.tenant) == NONE


@pytest.mark.parametrize(
    ("tool", "effect", "covered"),
    [
        ("refund.create", Effect.PAYMENT, True),
        ("refund.create", Effect.WRITE, False),
        ("mail.send", Effect.PAYMENT, False),
    ],
)
def test_a_scope_bounds_tools_and_effects(people: Cast, tool: str, effect: Effect, covered: bool) -> None:
    grant_scope(people.operator, people.tenant, tool_glob="refund.*", effects=("payment",))
    assert may_approve(people.operator, people.tenant, tool, effect) is covered


def test_the_ledger_asks_the_same_question(people: Cast) -> None:
    asked = {
        name
        for name in EVERYBODY
        if approvals._approvers.may_approve(
            user_id=getattr(people, name).pk, tenant_id=people.tenant.pk, tool="x", effect=Effect.WRITE
        )
    }
    assert asked == {"approver", "second_approver", "owner"}
    assert not approvals._approvers.may_approve(
        user_id=0, tenant_id=people.tenant.pk, tool="x", effect=Effect.WRITE
    )


def test_a_role_given_twice_changes_nothing(people: Cast) -> None:
    before = rights_of(people.approver, people.tenant)
    grant_role(people.approver, people.tenant, Role.APPROVER)
    assert rights_of(people.approver, people.tenant) == before
    assert ApprovalScope.objects.filter(tenant=people.tenant).count() == 1


def test_who_decides_joins_the_first_group(people: Cast) -> None:
    group = ReviewGroup.objects.get(tenant=people.tenant, is_first_owner=True)
    names = set(group.members.values_list("username", flat=True))
    assert {"operator", "approver"} <= names
    assert not names & {"viewer", "auditor", "stranger", "superuser"}


def test_a_person_may_work_for_two_tenants(people: Cast) -> None:
    both = person("both", people.tenant, Role.OPERATOR)
    grant_role(both, people.other_tenant, Role.VIEWER)
    assert [tenant.slug for tenant in tenants_of(both)] == ["acme", "globex"]
    assert not may_decide(both, people.other_tenant)


def test_a_scope_of_one_tenant_is_none_of_another(people: Cast) -> None:
    assign_perm("ledger.decide_work", people.stranger, people.tenant)
    assert not may_approve(people.stranger, people.tenant, "x", Effect.WRITE)


def test_a_refusal_names_who_grants(people: Cast) -> None:
    refusal = missing_right(people.tenant, "decide_work")
    assert isinstance(refusal, NotPermitted)
    assert refusal.granted_by == ("admin",)
    assert "decide work in Acme" in refusal.reason
