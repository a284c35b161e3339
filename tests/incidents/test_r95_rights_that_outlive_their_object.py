"""R95: A right given on something that is gone is inherited by what later gets the same number.

Kind: a name that means something else by now. Rights are rows that point at their object by a foreign key and
go with it, so nothing has to clean up after them; none is kept by the name of a table and a number.
"""

from __future__ import annotations

import pytest
from django.db import connection

from ledger.models import ReviewGroup, Tenant, User
from ledger.rules.vocabulary import Effect
from review.models import ApprovalScope, ApprovalScopePermission
from review.rights import NONE, may_approve, rights_of
from review.roles import Role, grant_role, grant_scope
from tests.support.cast import Cast, cast, person

pytestmark = pytest.mark.django_db

MANY = 500


@pytest.fixture
def people(db: None) -> Cast:
    return cast()


def test_a_scope_made_anew_under_an_old_number_gives_nobody_anything(people: Cast) -> None:
    voter = person("voter", people.tenant, Role.OPERATOR)
    grant_scope(voter, people.tenant, tool_glob="refund.*", effects=("payment",))
    assert may_approve(voter, people.tenant, "refund.create", Effect.PAYMENT)
    scope = ApprovalScope.objects.get(person_permissions__user=voter)
    number = scope.pk
    scope.delete()
    assert not ApprovalScopePermission.objects.filter(content_object_id=number).exists()
    ApprovalScope.objects.create(pk=number, tenant=people.tenant, tool_glob="refund.*", effects=["payment"])
    assert not may_approve(voter, people.tenant, "refund.create", Effect.PAYMENT)


def test_a_tenant_made_anew_under_an_old_number_shows_nobody_anything(people: Cast) -> None:
    gone = Tenant.objects.create(slug="gone", name="Gone")
    reader = person("reader", gone, *Role)
    number = gone.pk
    ReviewGroup.objects.filter(tenant=gone).delete()
    ApprovalScope.objects.filter(tenant=gone).delete()
    gone.delete()
    again = Tenant.objects.create(pk=number, slug="again", name="Again")
    assert rights_of(User.objects.get(pk=reader.pk), again) == NONE


def test_a_team_made_anew_under_an_old_number_has_nobody_in_it(people: Cast) -> None:
    team = ReviewGroup.objects.create(tenant=people.tenant, name="night")
    team.members.add(people.operator)
    number = team.pk
    team.delete()
    assert not ReviewGroup.objects.create(pk=number, tenant=people.tenant, name="day").members.exists()


def test_many_rights_go_with_their_object_in_one_statement_each(people: Cast) -> None:
    """Nothing is left over that somebody would have to look for."""
    scope = ApprovalScope.objects.create(tenant=people.tenant, tool_glob="x", effects=[])
    kind = ApprovalScopePermission.objects.first()
    assert kind is not None
    users = User.objects.bulk_create(User(username=f"many-{number}") for number in range(MANY))
    ApprovalScopePermission.objects.bulk_create(
        ApprovalScopePermission(user=user, content_object=scope, permission=kind.permission) for user in users
    )
    before = ApprovalScopePermission.objects.count()
    scope.delete()
    assert ApprovalScopePermission.objects.count() == before - MANY


def test_no_right_is_kept_by_the_name_of_a_table_and_a_number(people: Cast) -> None:
    """The generic tables of the library stay empty, whatever role is given."""
    for role in Role:
        grant_role(people.viewer, people.tenant, role)
    generic = {"guardian_userobjectpermission", "guardian_groupobjectpermission"}
    for name in generic & set(connection.introspection.table_names()):
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {name}")  # noqa: S608
            assert cursor.fetchone() == (0,)
