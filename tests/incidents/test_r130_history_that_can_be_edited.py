"""R130: append-only is a habit of the code; TRUNCATE slips past row triggers, and a superuser switches them
off.

Kind: history that somebody could change. The database refuses it by whatever hand (row, statement and
cascade), and what a superuser does with the triggers off is found by the chain
(`tests/ledger/commands/test_history_and_fsck.py`). Our rules decide otherwise than the report asked: it is
triggers that refuse, not missing grants, since the program owns its tables; and no retention is built.
"""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, models, transaction
from django.db.models import ProtectedError

from ledger.models import Agent, Attempt, Event, Operation, Refusal, Tenant, User
from ledger.models.base import TenantRow
from tests.incidents.aftermath import history_only_grew, nothing_else_went_wrong
from tests.incidents.scene import DEPLOY, Scene

KEPT = (
    "event", "refusal", "decision", "vote", "approval", "approvaluse", "settlement", "attempt", "operation",
    "reviewitem", "lookup", "policysnapshot", "budgetentry",
)  # fmt: skip
"""Tables whose rows nobody takes away again."""


@pytest.fixture
def full(scene: Scene) -> Scene:
    """A scene with a row in every table that keeps history."""
    held = scene.recorded("held", DEPLOY)
    scene.approve(held)
    leave = scene.dispatched(scene.recorded("held", DEPLOY, run="r"))
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    scene.dispatched("budget", run="r")
    scene.intent("refused", "no.such.tool", {})
    scene.unknown("asked")
    scene.asks()
    history_only_grew(scene)
    return scene


def tables() -> list[type[models.Model]]:
    return [model for model in apps.get_models() if model.__name__.lower() in KEPT]


def refused(sql: str) -> bool:
    """Does the database refuse it, with the setting of tests off that lets them empty tables?"""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL ledger.allow_truncate = 'off'")
            cursor.execute(sql)
    except DatabaseError:
        return True
    return False


def test_no_row_of_history_is_deleted_or_truncated(full: Scene) -> None:
    assert len(tables()) == len(KEPT)
    for model in tables():
        table = model._meta.db_table
        assert model._default_manager.exists(), f"nothing to try it on: {table}"
        assert refused(f'DELETE FROM "{table}"'), table  # noqa: S608
        assert refused(f'TRUNCATE "{table}" CASCADE'), table
    nothing_else_went_wrong(full)


def test_no_table_above_takes_history_with_it(full: Scene) -> None:
    for model in (Tenant, User, Agent):
        assert refused(f'TRUNCATE "{model._meta.db_table}" CASCADE'), model
        assert refused(f'DELETE FROM "{model._meta.db_table}"'), model  # noqa: S608
    nothing_else_went_wrong(full)


@pytest.mark.parametrize("model", [Event, Refusal])
def test_no_column_of_history_is_edited(full: Scene, model: type[TenantRow]) -> None:
    columns = [column.column for column in model._meta.concrete_fields]
    assert len(columns) > 5
    for column in columns:
        assert refused(f'UPDATE "{model._meta.db_table}" SET "{column}" = "{column}"'), column  # noqa: S608
    nothing_else_went_wrong(full)


def test_nothing_of_ours_can_delete_it_either(full: Scene) -> None:
    for model in (Tenant, Operation, Attempt, Agent):
        for row in model._default_manager.all():
            with pytest.raises((ProtectedError, DatabaseError)), transaction.atomic():
                row.delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        Event.objects.all().delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        Event.objects.update(actor="nobody")
    with pytest.raises((ProtectedError, DatabaseError)), transaction.atomic():
        full.people.approver.delete()
    assert "django.contrib.admin" not in {app.name for app in apps.get_app_configs()}
    nothing_else_went_wrong(full)
