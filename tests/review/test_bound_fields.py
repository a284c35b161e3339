"""Each field that a vote is bound to, changed between vote and use: leave is refused, nothing is used."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from inspect import signature
from typing import Any

import pytest
from django.db import connection

from ledger.lifecycle import LeaveRefused
from ledger.models import ApprovalUse, Attempt
from ledger.rules.authority import Reason
from ledger.rules.digest import vote_digest
from ledger.transactions import durable
from review import decisions
from tests.support import make
from tests.support.cast import Cast

BOUND: Mapping[str, tuple[Any, Any]] = {
    "tenant": ("1", "2"),
    "operation": ("op_1", "op_2"),
    "attempt": ("att_1", "att_2"),
    "tool": ("deploy.run", "deploy.other"),
    "args_hash": ("v1:sha256:1", "v1:sha256:2"),
    "rule_hash": ("v1:sha256:1", "v1:sha256:2"),
    "scopes": (["tool:*"], ["tool:deploy.*"]),
    "generation": (1, 2),
    "approver": ("7", "8"),
    "meaning": ("Deploy", "Deploy "),
    "expires_at": (
        datetime(2026, 11, 30, tzinfo=UTC),
        datetime(2026, 11, 30, tzinfo=UTC) + timedelta(microseconds=1),
    ),
}
STORED: Mapping[str, str] = {
    "args_hash": "UPDATE ledger_attempt SET args_hash = 'v1:sha256:0', args_bytes = NULL WHERE id = %s",
    "scopes": "UPDATE ledger_attempt SET scopes = '{tool:deploy.*}' WHERE id = %s",
    "generation": "UPDATE ledger_vote SET generation = generation + 1 WHERE attempt_id = %s",
    "approver": "UPDATE ledger_vote SET approver_id = (SELECT id FROM ledger_user "
    "WHERE username = 'second-approver') WHERE attempt_id = %s",
    "meaning": "UPDATE ledger_vote SET meaning = 'Something else' WHERE attempt_id = %s",
    "expires_at": "UPDATE ledger_vote SET expires_at = expires_at + interval '1 millisecond' "
    "WHERE attempt_id = %s",
    "digest": "UPDATE ledger_vote SET digest = 'v1:sha256:0' WHERE attempt_id = %s",
}


def test_the_list_is_the_digests() -> None:
    assert set(BOUND) == set(signature(vote_digest).parameters)


@pytest.mark.parametrize("field", BOUND)
def test_each_field_changes_the_digest(field: str) -> None:
    given = {name: before for name, (before, _) in BOUND.items()}
    assert vote_digest(**given) != vote_digest(**{**given, field: BOUND[field][1]})


@pytest.fixture
def approved(people: Cast) -> Attempt:
    held = make.held(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why="planned for tonight")
    return make.fresh(held)


@pytest.mark.parametrize("field", STORED)
def test_changed_in_the_database_between_vote_and_use(people: Cast, approved: Attempt, field: str) -> None:
    """By somebody with the database in hand, past the triggers that keep these columns as they are."""
    unguarded(STORED[field], approved.pk)
    assert_stale(people, approved)


def test_the_rule_changed_between_vote_and_use(people: Cast, approved: Attempt) -> None:
    costs = {**make.TOOLS[make.DEPLOY], "cost": {"amount": "/price"}}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.DEPLOY: costs})
    assert_stale(people, approved)


def test_a_vote_for_one_attempt_is_none_for_another(people: Cast, approved: Attempt) -> None:
    """Moved to an attempt of another operation with the very same content."""
    other = make.held(people.key)
    for table in ("ledger_vote", "ledger_approval"):
        unguarded(f"UPDATE {table} SET attempt_id = '{other.pk}' WHERE attempt_id = %s", approved.pk)  # noqa: S608
    unguarded("UPDATE ledger_approval SET operation_id = %s", other.operation_id)
    unguarded("UPDATE ledger_attempt SET state = 'INTENT_RECORDED', reason = '' WHERE id = %s", other.pk)
    unguarded(
        "UPDATE ledger_reviewitem SET closed_at = now(), closed_how = 'x' WHERE attempt_id = %s", other.pk
    )
    assert_stale(people, other)


def assert_stale(people: Cast, attempt: Attempt) -> None:
    refused = make.ask_leave(people.key, make.fresh(attempt))
    assert isinstance(refused, LeaveRefused)
    assert Reason.APPROVAL_STALE in refused.reasons
    assert not ApprovalUse.objects.exists()


def unguarded(sql: str, named: str) -> None:
    def write() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(sql, [named])
            cursor.execute("SET LOCAL session_replication_role = origin")

    durable(write)
