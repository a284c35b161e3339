"""R108: while a report keeps an old snapshot open, finished work cannot be cleared away behind the claims.

Kind: a queue that gets slower with everything it ever did.

The short form: a claim reads the partial index of what is due, never the finished attempts or their history;
sessions of ours that idle in a transaction are ended by the database. What died since the snapshot is walked
all the same, a few pages per row, and no monitor is shown dead rows or the age of the oldest snapshot yet.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg
from django.db import connection

from ledger.models import Attempt
from ledger.reconciliation import claims
from ledger.transactions import database_clock
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import MAIL, Scene
from tests.support.beside import database_url_of_tests

FINISHED = 60
PAGES_PER_DEAD_ROW = 12
DUE = """
    EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
    SELECT id FROM ledger_attempt
    WHERE (lookup_lease_until IS NULL OR lookup_lease_until <= now()) AND next_check_at <= now()
    AND state IN ('UNKNOWN', 'MANUAL_REVIEW')
    ORDER BY next_check_at LIMIT 1 FOR UPDATE SKIP LOCKED
"""


def plan() -> dict[str, Any]:
    """How the database finds the next attempt to claim, with the pages it touched."""
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")  # a table this small would be read whole
        cursor.execute(DUE)
        found = cursor.fetchone()[0]
        cursor.execute("RESET enable_seqscan")
    document = json.loads(found) if isinstance(found, str) else found
    whole: dict[str, Any] = document[0]["Plan"]
    return whole


def pages(of: dict[str, Any]) -> int:
    return int(of["Shared Hit Blocks"]) + int(of["Shared Read Blocks"])


def test_a_claim_stays_bounded_under_an_old_snapshot(scene: Scene) -> None:
    scene.unknown("waits", tool=MAIL)
    Attempt.objects.filter(operation__operation_key="waits").update(next_check_at=database_clock())
    with psycopg.connect(database_url_of_tests()) as report:
        report.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        report.execute("SELECT count(*) FROM ledger_attempt")
        before = pages(plan())
        for number in range(FINISHED):
            scene.confirmed(f"k{number}", tool=MAIL)
        after = plan()
        report.execute("SELECT count(*) FROM ledger_attempt")
    assert "attempts_to_look_up" in json.dumps(after)
    assert pages(after) <= before + PAGES_PER_DEAD_ROW * FINISHED
    claimed = [claim for lane in claims.due_lanes() for claim in claims.claim_in(lane)]
    assert [claim.attempt_id for claim in claimed] == [
        Attempt.objects.get(operation__operation_key="waits").pk
    ]
    nothing_else_went_wrong(scene)


def test_no_session_of_ours_keeps_a_snapshot_for_long(scene: Scene) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setting::int FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"
        )
        assert 0 < cursor.fetchone()[0] <= 15_000
        cursor.execute("SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'")
        assert 0 < cursor.fetchone()[0] <= 10_000
    nothing_else_went_wrong(scene)
