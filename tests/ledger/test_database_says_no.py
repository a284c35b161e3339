"""The database itself refuses what none of our code may do, by whatever hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.db import DatabaseError, connection, transaction

from ledger import lifecycle
from ledger.models import Attempt
from ledger.rules.states import State
from ledger.transactions import durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

REFUSED: Mapping[str, str] = {
    "an illegal move": "UPDATE ledger_attempt SET state = 'DISPATCHED' WHERE state = 'OUTCOME_CONFIRMED'",
    "other arguments": "UPDATE ledger_attempt SET args_bytes = 'x', args_hash = 'y'",
    "another result": "UPDATE ledger_attempt SET result_ref = 'x' WHERE state = 'OUTCOME_CONFIRMED'",
    "a second confirmed attempt": (
        "UPDATE ledger_attempt SET state = 'OUTCOME_CONFIRMED', confirmed_by = 'operator' "
        "WHERE state = 'MANUAL_REVIEW' AND dispatched_at IS NULL"
    ),
    "a decision edited": "UPDATE ledger_decision SET why = 'x'",
    "an item closed under an open question": "UPDATE ledger_reviewitem SET closed_at = now()",
    "a held attempt sent without approval": (
        "UPDATE ledger_attempt SET state = 'INTENT_RECORDED' "
        "WHERE state = 'MANUAL_REVIEW' AND dispatched_at IS NULL; "
        "UPDATE ledger_reviewitem SET closed_at = now() WHERE attempt_id IN "
        "(SELECT id FROM ledger_attempt WHERE state = 'INTENT_RECORDED'); "
        "UPDATE ledger_attempt SET state = 'DISPATCHED', dispatched_at = now(), lease_until = now() "
        "WHERE state = 'INTENT_RECORDED' AND held_at IS NOT NULL"
    ),
    "a used approval used again": "UPDATE ledger_approval SET used_at = now() WHERE used_at IS NOT NULL",
    "an approval used by another operation": (
        "INSERT INTO ledger_approvaluse (tenant_id, approval_id, attempt_id, args_hash, rule_hash, at) "
        "SELECT a.tenant_id, a.id, t.id, '', '', now() FROM ledger_approval a, ledger_attempt t "
        "WHERE t.operation_id <> a.operation_id AND a.used_at IS NULL LIMIT 1"
    ),
    "an operation un-cancelled": (
        "UPDATE ledger_operation SET cancelled_at = NULL WHERE cancelled_at IS NOT NULL"
    ),
    "a key un-revoked": "UPDATE ledger_apikey SET revoked_at = NULL WHERE revoked_at IS NOT NULL",
    "a unit of money in a second spelling": (
        "INSERT INTO ledger_budgetaccount (tenant_id, run_id, unit, reserved, spent) "
        "SELECT tenant_id, run_id, 'eur', 0, 0 FROM ledger_budgetaccount LIMIT 1"
    ),
    "less than nothing spent": "UPDATE ledger_budgetaccount SET spent = -0.00000001",
    "a limit raised": 'UPDATE ledger_budgetaccount SET "limit" = 1000',
    "a reference across the wall": (
        "UPDATE ledger_reviewitem SET owner_group_id = (SELECT g.id FROM ledger_reviewgroup g "
        "WHERE g.tenant_id <> ledger_reviewitem.tenant_id LIMIT 1)"
    ),
}


@pytest.fixture
def people() -> Cast:
    """A ledger with work in every corner that a case needs."""
    people = cast()
    make.confirmed(people.key)
    make.held(people.key)
    make.dispatched(people.key, run="nightly")
    cancelled = make.recorded(people.key)
    durable(
        lambda: lifecycle.cancel_operation(
            key=people.key, operation_id=cancelled.operation_id, reason="no need"
        )
    )
    for sent in (True, False):
        doubtful = make.for_a_person(people.key)
        item = make.item_of(doubtful)
        durable(lambda item=item: lifecycle.approve(item_id=item.pk, by=people.approver, why="yes"))  # type: ignore[misc]
        if sent:
            make.send(people.key, doubtful)
    other = make.key(people.agent)
    type(other).objects.filter(pk=other.pk).update(revoked_at=other.created_at)
    return people


@pytest.mark.parametrize("sql", REFUSED.values(), ids=REFUSED.keys())
def test_refused_by_the_database(people: Cast, sql: str) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        run_to_the_commit(sql)


def run_to_the_commit(sql: str) -> None:
    """Run each statement, then what the database checks at commit."""
    with connection.cursor() as cursor:
        for statement in sql.split("; "):
            cursor.execute(statement)
        assert cursor.rowcount > 0, "the case found no row to try it on"
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def test_the_cases_have_rows_to_try(people: Cast) -> None:
    states = set(Attempt.objects.values_list("state", flat=True))
    assert {State.OUTCOME_CONFIRMED, State.MANUAL_REVIEW, State.DISPATCHED, State.CANCELLED} <= states
