"""`up --demo` as anybody starts it: real processes, really killed, and every kind of work within a minute."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from dashboard.management.demo import wire
from dashboard.management.demo.state import Secrets
from ledger.management.command import Exit
from tests.support.processes import RunningLedger, still_running, wait_until

pytestmark = [pytest.mark.crash, pytest.mark.slow]

WITHIN_S = 60.0
GONE_WITHIN_S = 2.0

Row = tuple[str, str, str]


def attempts(ledger: RunningLedger) -> list[Row]:
    """State, by whom it was confirmed, and reason of every attempt."""
    query = "SELECT state, coalesce(confirmed_by, ''), coalesce(reason, '') FROM ledger_attempt"
    with psycopg.connect(ledger.home.database_url) as connection:
        return [(state, by, reason) for state, by, reason in connection.execute(query)]


def count_of(table: str, ledger: RunningLedger) -> int:
    query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
    with psycopg.connect(ledger.home.database_url) as connection:
        return int((connection.execute(query).fetchone() or [0])[0])


KINDS: dict[str, Callable[[Row], bool]] = {
    "confirmed": lambda row: row[:2] == ("OUTCOME_CONFIRMED", "agent"),
    "reconciled": lambda row: row[:2] == ("OUTCOME_CONFIRMED", "lookup"),
    "unknown": lambda row: row[0] == "UNKNOWN",
    "proven absent, then replaced": lambda row: row[0] == "SUPERSEDED",
    "no look-up": lambda row: row[::2] == ("MANUAL_REVIEW", "no_lookup"),
    "not idempotent": lambda row: row[::2] == ("MANUAL_REVIEW", "not_idempotent"),
    "first send": lambda row: row[::2] == ("MANUAL_REVIEW", "approval_required"),
    "changed": lambda row: row[::2] == ("MANUAL_REVIEW", "arguments_changed"),
}


def missing_kinds(ledger: RunningLedger) -> set[str]:
    rows = attempts(ledger)
    return {name for name, is_of in KINDS.items() if not any(map(is_of, rows))}


def delivery_states(ledger: RunningLedger) -> set[str]:
    with psycopg.connect(ledger.home.database_url) as connection:
        return {state for (state,) in connection.execute("SELECT DISTINCT state FROM ledger_delivery")}


def most_effects(ledger: RunningLedger) -> int:
    """The most effects that any one operation had, as the provider counts."""
    port = Secrets.at(ledger.home.path / "demo.json").provider_port
    _, counted = wire.ask(f"http://127.0.0.1:{port}", "GET", "/effects")
    return int(max(counted["by_correlation_id"].values()))


def test_a_minute_of_the_demo_and_a_second_start(ledger_home_directory: Path) -> None:
    ledger = RunningLedger(ledger_home_directory)
    try:
        ledger.start("--demo")
        wait_until(lambda: not missing_kinds(ledger), within_s=WITHIN_S, what="every kind of work")
        assert most_effects(ledger) == 1
        wait_until(
            lambda: delivery_states(ledger) >= {"ACKED", "DEAD_LETTERED", "SENT"},
            within_s=WITHIN_S,
            what="a result taken, one given up, one that waits",
        )
        assert "killed after the bank stored it" in ledger.said()

        second = ledger.manage("demo", "--port", str(ledger.port))
        assert second.returncode == Exit.CONFLICT

        demo = ledger.child("demo")
        its_children = demo.children()
        demo.kill()
        assert still_running([demo, *its_children], within_s=GONE_WITHIN_S) == []
        wait_until(
            lambda: ledger.said().count("Sign in at") == 2, within_s=WITHIN_S, what="the demo started again"
        )

        before = count_of("ledger_operation", ledger)
        running = ledger.children()
        assert ledger.stop() == 0
        assert still_running(running, within_s=GONE_WITHIN_S) == []

        ledger.start("--demo")
        wait_until(
            lambda: count_of("ledger_operation", ledger) > before,
            within_s=WITHIN_S,
            what="new work under new keys",
        )
        assert count_of("ledger_user", ledger) == 5
        assert count_of("ledger_policysnapshot", ledger) == 2
        assert most_effects(ledger) == 1
        assert ledger.manage("fsck").returncode == 0, ledger.manage("fsck").stdout
    finally:
        ledger.kill_everything()
