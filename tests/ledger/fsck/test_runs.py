"""Runs of fsck: what one goes on from, what it may never miss, what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event as Signal
from threading import Thread

import psycopg
import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction

from config.celery import app
from ledger import fsck, lifecycle, tasks
from ledger.models import Attempt, FsckForm, FsckRun
from ledger.queries.fsck import last_runs, standing_runs, whole_is_due
from ledger.queries.invariants import INVARIANTS, OF_THE_SYSTEM, register_checks
from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.queries.snapshot import one_snapshot
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db(transaction=True)

TOUCHED, WHOLE = FsckForm.TOUCHED, FsckForm.WHOLE


@pytest.fixture
def people() -> Cast:
    return cast()


def past_triggers(sql: str, *parameters: str | int | datetime) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql, parameters)


def spoil(attempt: Attempt) -> None:
    """Break one operation without touching it."""
    past_triggers("UPDATE ledger_operation SET settlements_count = 9 WHERE id = %s", attempt.operation_id)


def run(form: FsckForm = TOUCHED) -> FsckRun:
    return fsck.kept(fsck.run_fsck(form))


def test_without_a_clean_run_everything_is_looked_at(people: Cast) -> None:
    spoil(make.recorded(people.key))
    assert run().operations is None
    assert run().findings_count == 1


def test_only_what_was_written_to_since_is_looked_at(people: Cast) -> None:
    old, other = make.recorded(people.key), make.recorded(people.key)
    run()
    spoil(other)
    assert (run().operations, run(WHOLE).findings_count) == (0, 1)
    make.send(people.key, old)
    found = run()
    assert (found.operations, found.findings_count) == (1, 0)


def test_a_fault_stays_told_until_its_operation_is_right(people: Cast) -> None:
    run()
    attempt = make.recorded(people.key)
    spoil(attempt)
    assert [run().findings_count for _ in range(2)] == [1, 1]
    past_triggers("UPDATE ledger_operation SET settlements_count = 0 WHERE id = %s", attempt.operation_id)
    make.recorded(people.key)
    assert run().operations == 2
    assert run().operations == 0


def test_what_is_committed_late_is_not_missed(people: Cast) -> None:
    intent = make.intent_of()
    with not_yet_committed(lambda: lifecycle.record_intent(key=people.key, intent=intent)):
        make.recorded(people.key)  # numbered later, committed earlier
        assert (run(WHOLE).operations, run().operations) == (None, 0)
    assert run().operations == 1
    assert run().operations == 0


@contextmanager
def not_yet_committed(work: Callable[[], object]) -> Iterator[None]:
    """`work` is done in another session, which commits at the end of the block."""
    done, commit = Signal(), Signal()

    def session() -> None:
        try:
            with transaction.atomic():
                work()
                done.set()
                assert commit.wait(30)
        finally:
            done.set()
            connection.close()

    thread = Thread(target=session)
    thread.start()
    try:
        assert done.wait(30)
        yield
    finally:
        commit.set()
        thread.join(30)


def test_in_a_copy_of_the_database_no_earlier_run_counts(people: Cast) -> None:
    make.recorded(people.key)
    run()
    past_triggers("UPDATE ledger_fsckrun SET system = 'another'")
    assert run().operations is None


def test_transactions_of_another_cluster_are_not_touched_for_ever(people: Cast) -> None:
    copied = make.recorded(people.key)
    past_triggers("UPDATE ledger_event SET written_in = '99999999' WHERE attempt_id = %s", copied.pk)
    run(WHOLE)
    make.recorded(people.key)
    assert run().operations == 1


def test_a_fault_of_the_system_is_found_although_nothing_was_touched(people: Cast) -> None:
    run()
    past_triggers("UPDATE review_tenantpermission SET user_id = 0 WHERE user_id = %s", people.viewer.pk)
    assert run().findings_count == 1


def test_runs_are_never_changed_and_go_after_a_week(people: Cast) -> None:
    first, clean = run(WHOLE), run()
    for change in (clean.save, first.delete):
        with pytest.raises((IntegrityError, ProgrammingError)):
            change()
    past_triggers("UPDATE ledger_fsckrun SET started_at = started_at - interval '8 days'")
    newest = run()
    assert set(FsckRun.objects.values_list("pk", flat=True)) == {first.pk, newest.pk}


def test_the_first_findings_of_each_tenant_and_all_counts_are_kept(people: Cast) -> None:
    for _ in range(fsck.KEPT_FINDINGS + 2):
        spoil(make.recorded(people.key))
    kept = run()
    assert kept.findings_count == kept.counts["acme"] == fsck.KEPT_FINDINGS + 2
    assert len(kept.findings) == fsck.KEPT_FINDINGS
    assert kept.findings[0]["invariant"] == "settlements_are_numbered_without_gaps"


def test_in_the_background_one_runs_at_a_time(people: Cast) -> None:
    with psycopg.connect(dsn()) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [fsck.ONE_AT_A_TIME])
        assert fsck.in_background(TOUCHED) is None
        other.execute("SELECT pg_advisory_unlock(%s)", [fsck.ONE_AT_A_TIME])
        assert fsck.in_background(TOUCHED) is not None


def dsn() -> str:
    connection.ensure_connection()
    found: str = connection.connection.info.dsn
    return found


def test_the_tasks_keep_a_run_and_a_whole_one_once_a_night(people: Cast) -> None:
    tasks.fsck_touched.apply().get()
    for _ in range(2):
        tasks.fsck_whole.apply().get()
    assert sorted(FsckRun.objects.values_list("form", flat=True)) == [TOUCHED, WHOLE]


def test_their_messages_expire_and_their_work_ends() -> None:
    for name in ("fsck_touched", "fsck_whole"):
        entry = app.conf.beat_schedule[name]
        assert entry["options"]["expires"] <= 1800
        assert 0 < (app.tasks[entry["task"]].time_limit or 0) < 3600


def test_a_check_that_takes_too_long_is_a_finding(people: Cast, slow_check: Check) -> None:
    report = fsck.run_fsck(WHOLE, statement_timeout_s=1)
    assert [finding.invariant for finding in report.findings] == [slow_check.__name__]
    assert "statement timeout" in report.findings[0].detail


@pytest.fixture
def slow_check() -> Iterator[Check]:
    def takes_its_time(scope: Scope) -> Iterator[Broken]:
        yield from scope.select_system("SELECT 'x', 'y' FROM pg_sleep(30)")

    register_checks(takes_its_time)
    yield takes_its_time
    INVARIANTS.remove(takes_its_time)
    OF_THE_SYSTEM.remove(takes_its_time)


def test_nothing_is_locked_and_nothing_can_be_written(people: Cast) -> None:
    with one_snapshot(), connection.cursor() as cursor:
        cursor.execute("SHOW transaction_read_only")
        assert cursor.fetchone() == ("on",)


def test_a_night_that_was_missed_is_made_up_for(people: Cast) -> None:
    at = datetime(2026, 11, 29, 3, 17, tzinfo=UTC)
    assert whole_is_due(at)
    kept = run(WHOLE)
    past_triggers("UPDATE ledger_fsckrun SET started_at = %s", at)
    assert not whole_is_due(at + timedelta(hours=23))
    assert whole_is_due(at + timedelta(hours=24))
    assert kept.form == WHOLE


def test_a_whole_run_counts_for_both_forms(people: Cast) -> None:
    whole = run(WHOLE)
    assert [last.checked_at for last in last_runs()] == [whole.started_at, whole.started_at]
    assert [standing.pk for standing in standing_runs()] == [whole.pk]
    touched = run()
    assert {standing.pk for standing in standing_runs()} == {whole.pk, touched.pk}
    assert last_runs()[0].checked_at == whole.started_at
