"""What a pass of the sender reads to find what is due: what waits, and nothing of what is over."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from ledger import lifecycle
from ledger.models import Approval, Attempt
from ledger.reconciliation.due_sends import due_sends
from ledger.transactions import database_clock, durable
from tests.ledger.reconciliation.desk import Desk
from tests.support import make

OVER = 20_000


def to_be_sent_again(desk: Desk) -> Attempt:
    """Sent, not found, and approved once more: an open question that waits for the ledger."""
    attempt = desk.posted()
    desk.sends_in_vain(attempt)
    item = make.item_of(attempt)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=desk.people.approver, why="checked"))
    return make.fresh(attempt)


@pytest.fixture
def waiting(desk: Desk) -> list[Attempt]:
    """One of each kind, those that wait longest first."""
    desk.rule(idempotent=False, key_ttl_s=0)
    return [to_be_sent_again(desk), desk.posted()]


def much_is_over(like: Attempt) -> None:
    """So many more attempts that are confirmed, put past the verbs, which take minutes."""
    names = [field.get_attname() for field in Attempt._meta.concrete_fields]
    made = {"id": "'att_' || made", "operation_id": "'op_' || made"}
    columns, values = ", ".join(names), ", ".join(made.get(name, name) for name in names)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            f"INSERT INTO ledger_attempt ({columns}) SELECT {values} "  # noqa: S608
            "FROM ledger_attempt, generate_series(1, %s) made WHERE id = %s",
            [OVER, like.pk],
        )
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("ANALYZE ledger_attempt")


def scans(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a plan that read attempts."""
    below = [scan for part in node.get("Plans", ()) for scan in scans(part)]
    return [node, *below] if node.get("Relation Name") == "ledger_attempt" else below


def rows_read(scan: dict[str, Any]) -> int:
    looked_at = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
    return int(sum(scan.get(name, 0) for name in looked_at) * scan["Actual Loops"])


def test_what_is_over_costs_a_pass_nothing(desk: Desk, waiting: list[Attempt]) -> None:
    over = desk.posted()
    desk.rule(executor="agent")
    make.reported(desk.people.key, make.send(desk.people.key, over), "succeeded", result_ref="re_1")
    desk.rule(idempotent=False, key_ttl_s=0)
    much_is_over(over)
    with CaptureQueriesContext(connection) as captured:
        assert due_sends(at_most=10) == [attempt.pk for attempt in waiting]
    asked = [query["sql"] for query in captured if 'FROM "ledger_attempt"' in query["sql"]]
    assert len(asked) == 3
    for sql in asked:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
            (plan,) = cursor.fetchone()
        found = scans((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])
        assert found
        assert "Seq Scan" not in {scan["Node Type"] for scan in found}, sql
        assert sum(map(rows_read, found)) <= OVER / 100, sql


def test_an_approval_that_is_over_opens_nothing(waiting: list[Attempt]) -> None:
    approved, recorded = waiting
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        Approval.objects.filter(attempt=approved).update(expires_at=database_clock())
        cursor.execute("SET LOCAL session_replication_role = origin")
    assert due_sends(at_most=10) == [recorded.pk]
