"""`fsck` and `verify_history` on committed work: one snapshot, counts, exit codes, and a portable export."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from django.db import connection, transaction

from ledger.events import SYSTEM, append
from ledger.models import Agent, FsckRun, Operation, Tenant, User
from ledger.queries.invariants import INVARIANTS
from ledger.rules.chain import ChainedEvent, verify_chain
from ledger.rules.vocabulary import EventKind
from ledger.transactions import database_clock, durable
from tests.ledger.commands.support import run
from tests.support import make
from tests.support.cast import cast

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def histories() -> list[Operation]:
    """Two tenants with an operation of three events each."""
    owner = User.objects.create_user("owner")
    return [_operation(Tenant.objects.create(slug=slug, name=slug), owner) for slug in ("acme", "globex")]


def _operation(tenant: Tenant, owner: User) -> Operation:
    agent = Agent.objects.create(tenant=tenant, name="bot", owner=owner)
    operation = Operation.objects.create(
        tenant=tenant, operation_key="mail", agent=agent, created_at=database_clock()
    )
    for text in ("one", "zwei", "trois ✓"):
        durable(lambda: append(operation, EventKind.NOTED, actor=SYSTEM, now=database_clock(), text=text))  # noqa: B023
    return operation


def edit(sql: str) -> None:
    """Change rows past their triggers, and commit it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql)


def test_whole_chains_are_counted(histories: list[Operation]) -> None:
    ran = run("verify_history")
    assert (ran.exit, ran.data) == (0, {"operations": 2, "events": 6, "breaks": []})
    assert run("verify_history", "--tenant", "acme").data["events"] == 3


@pytest.mark.parametrize(
    ("sql", "sequence"),
    [
        ('UPDATE ledger_event SET body = \'{"text":"two"}\' WHERE sequence = 2', 2),
        ("DELETE FROM ledger_event WHERE sequence = 3", 3),
        ("DELETE FROM ledger_event WHERE sequence = 1", 1),
        ("DELETE FROM ledger_event", 3),
    ],
)
def test_break_is_named_by_operation_and_sequence(
    histories: list[Operation], sql: str, sequence: int
) -> None:
    edit(sql)
    ran = run("verify_history")
    assert ran.exit == 1
    assert {(found["operation"], found["sequence"]) for found in ran.data["breaks"]} == {
        (operation.pk, sequence) for operation in histories
    }


def test_export_verifies_without_the_database(histories: list[Operation], tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    assert run("verify_history", "--export", str(file)).exit == 0
    exported = dict(_exported(file))
    assert set(exported) == {operation.pk for operation in histories}
    assert all(verify_chain(chain) is None for chain in exported.values())
    forged = file.read_text(encoding="utf-8").replace("zwei", "drei")
    file.write_text(forged, encoding="utf-8")
    assert all(verify_chain(chain) for _, chain in _exported(file))


def _exported(file: Path) -> Iterator[tuple[str, list[ChainedEvent]]]:
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for operation, chain in groupby(lines, key=lambda line: line.pop("operation")):
        yield operation, [ChainedEvent(**line) for line in chain]


def test_export_never_overwrites_and_says_where_it_cannot_write(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text("older")
    assert run("verify_history", "--export", str(file)).exit == 4
    assert file.read_text() == "older"
    assert run("verify_history", "--export", str(tmp_path / "none" / "x")).exit == 2


def test_fsck_reads_one_snapshot_and_lists_what_is_broken(histories: list[Operation]) -> None:
    edit("UPDATE ledger_event SET actor = 'somebody' WHERE sequence = 2")
    ran = run("fsck", "--tenant", "acme")
    assert ran.exit == 1
    assert ran.data["invariants"] == len(INVARIANTS)
    assert {
        "invariant": "histories_are_whole_and_unedited",
        "tenant": "acme",
        "subject_id": histories[0].pk,
        "detail": "at event 2: edited: its hash does not cover what it says",
    } in ran.data["findings"]
    assert {finding["tenant"] for finding in ran.data["findings"]} == {"acme"}


def test_fsck_of_nothing_is_clean_and_of_no_tenant_is_a_usage_error() -> None:
    ran = run("fsck")
    assert (ran.exit, ran.data["findings"], ran.data["invariants"]) == (0, [], len(INVARIANTS))
    assert run("fsck", "--tenant", "acme").exit == 2


def test_the_document_of_fsck_is_what_its_docstring_says(histories: list[Operation]) -> None:
    whole = run("fsck").data
    assert whole["form"] == "whole"
    assert (whole["since"], whole["operations"]) == (None, None)
    assert whole["started_at"] <= whole["ended_at"]
    assert whole["duration_s"] >= 0
    assert [check["name"] for check in whole["checks"]] == [check.__name__ for check in INVARIANTS]
    assert sum(check["findings"] for check in whole["checks"]) == len(whole["findings"])
    assert FsckRun.objects.get(pk=whole["run"]).findings_count == len(whole["findings"])
    assert run("fsck", "--tenant", "acme").data["run"] is None


def test_since_last_goes_on_from_the_last_clean_run() -> None:
    first = run("fsck").data["run"]
    make.recorded(cast().key)
    ran = run("fsck", "--since-last")
    assert (ran.exit, ran.data["form"], ran.data["since"], ran.data["operations"]) == (0, "touched", first, 1)


def test_a_database_that_only_reads_is_checked_as_well() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
        try:
            ran = run("fsck")
        finally:
            cursor.execute("RESET default_transaction_read_only")
    assert (ran.exit, ran.data["run"], ran.data["findings"]) == (0, None, [])
