"""What was counted before budgets of money is counted on; the way back is open while there is no money."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from ledger import lifecycle
from ledger.models import BudgetAccount, BudgetEntry
from ledger.queries.invariants import findings
from ledger.transactions import durable
from tests.support import make
from tests.support.cast import cast

BEFORE, AFTER = [("ledger", "0002_tenant_wall")], [("ledger", "0003_money")]


def migrate(to: list[tuple[str, str]]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
    MigrationExecutor(connection).migrate(to)


def types_of_columns() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_name IN ('ledger_budgetaccount', 'ledger_budgetentry') AND column_name IN "
            "('limit', 'reserved', 'spent', 'reserved_change', 'spent_change')"
        )
        return dict(cursor.fetchall())


def counted() -> tuple[list[Any], list[Any]]:
    accounts = BudgetAccount.objects.order_by("pk").values_list("unit", "limit", "reserved", "spent")
    entries = BudgetEntry.objects.order_by("pk").values_list("kind", "reserved_change", "spent_change")
    return list(accounts), list(entries)


@pytest.mark.django_db(transaction=True)
def test_accounts_and_entries_survive_the_change_of_their_columns() -> None:
    people = cast()
    durable(lambda: lifecycle.open_run(key=people.key, name="nightly", limits={"tool_calls": 50}))
    make.confirmed(people.key, run="nightly")
    make.dispatched(people.key, run="nightly")
    before = counted()
    try:
        migrate(BEFORE)
        assert set(types_of_columns().values()) == {"bigint"}
        assert counted() == before
        migrate(AFTER)
        assert set(types_of_columns().values()) == {"numeric"}
        assert counted() == before
    finally:
        migrate(MigrationExecutor(connection).loader.graph.leaf_nodes())
    make.confirmed(people.key, run="nightly")
    assert list(findings()) == []
