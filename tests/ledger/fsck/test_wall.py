"""The catalogue of the wall: each reference between tenant rows has its key over (tenant_id, column)."""

import pytest
from django.db import connection

from ledger.models import Attempt
from ledger.queries.invariants.scope import Scope, tenant_models
from ledger.queries.invariants.system import wall_is_complete
from ledger.queries.invariants.tenancy import Reference, references

pytestmark = pytest.mark.django_db


def test_every_reference_has_its_foreign_key_and_no_other_claims_to_be_one() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'f' AND conname LIKE %s", ["wall\\_%"]
        )
        walls = {name for (name,) in cursor.fetchall()}
    assert walls == {reference.wall for reference in references()}
    assert list(wall_is_complete(Scope())) == []


def test_references_are_read_from_the_models() -> None:
    assert Attempt in tenant_models()
    assert Reference("ledger_attempt", "id", "operation_id", "ledger_operation", "id") in references()
    assert "requested_by_id" not in {reference.column for reference in references()}  # a person has no tenant
