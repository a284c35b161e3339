"""The table of moves against the table of the domain, written out by hand, and the database against both."""

from __future__ import annotations

from itertools import product

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from ledger.models import Attempt
from ledger.rules.states import (
    DELIVERY_MOVES,
    FINAL,
    FIRST_STATES,
    MOVES,
    DeliveryState,
    IllegalMove,
    State,
    check_move,
    is_live,
)
from tests.support import make
from tests.support.cast import cast

# "source: target, target (when), …": the sentence of the domain, not the table of the code.
DOMAIN = """
INTENT_RECORDED: DISPATCHED, MANUAL_REVIEW, SUPERSEDED, FAILED, CANCELLED, UNKNOWN (maybe_sent)
DISPATCHED: OUTCOME_CONFIRMED, FAILED_RETRYABLE, FAILED, UNKNOWN
UNKNOWN: OUTCOME_CONFIRMED, FAILED_RETRYABLE, FAILED, MANUAL_REVIEW, SUPERSEDED
MANUAL_REVIEW: OUTCOME_CONFIRMED, FAILED, SUPERSEDED, INTENT_RECORDED (held), CANCELLED (held), UNKNOWN (sent)
FAILED_RETRYABLE: SUPERSEDED, FAILED, OUTCOME_CONFIRMED, MANUAL_REVIEW, UNKNOWN (maybe_sent)
OUTCOME_CONFIRMED:
FAILED: OUTCOME_CONFIRMED (conflict)
CANCELLED: OUTCOME_CONFIRMED (conflict)
SUPERSEDED: OUTCOME_CONFIRMED (conflict)
"""


def _read(domain: str) -> dict[tuple[str, str], str]:
    legal = {}
    for line in domain.strip().splitlines():
        source, targets = line.split(":")
        for target in filter(None, map(str.strip, targets.split(","))):
            name, _, when = target.partition(" ")
            legal[source, name] = when.strip("()")
    return legal


LEGAL = _read(DOMAIN)

states = st.sampled_from(State)


def may(source: str, target: str, *, dispatched: bool, maybe_sent: bool, conflict: bool) -> bool:
    """Is this move legal by the domain's words?"""
    when = LEGAL.get((source, target))
    sent = dispatched or maybe_sent
    facts = {"": True, "held": not sent, "sent": sent, "maybe_sent": maybe_sent, "conflict": conflict}
    return when is not None and facts[when]


def test_the_table_is_the_domains() -> None:
    guards = {(move.source, move.target): move.guard.replace("always", "") for move in MOVES}
    assert guards == LEGAL
    assert len(MOVES) == len(LEGAL)


@given(
    source=states, target=states, dispatched=st.booleans(), maybe_sent=st.booleans(), conflict=st.booleans()
)
def test_the_check_allows_what_the_domain_allows(
    source: State, target: State, dispatched: bool, maybe_sent: bool, conflict: bool
) -> None:
    sent = dispatched or maybe_sent
    expected = may(source, target, dispatched=dispatched, maybe_sent=maybe_sent, conflict=conflict)
    allowed = True
    try:
        check_move(source, target, sent=sent, maybe_sent=maybe_sent, conflict_open=conflict)
    except IllegalMove:
        allowed = False
    assert allowed == expected


def test_nothing_leaves_a_final_state_but_a_corrected_conflict() -> None:
    leaving = {move for move in MOVES if move.source in FINAL}
    assert {move.target for move in leaving} == {State.OUTCOME_CONFIRMED}
    assert {move.guard for move in leaving} == {"conflict"}
    assert not any(move.source is State.OUTCOME_CONFIRMED for move in MOVES)


def test_only_leave_leads_to_dispatched_and_only_from_the_intent() -> None:
    assert [move.source for move in MOVES if move.target is State.DISPATCHED] == [State.INTENT_RECORDED]


@given(state=states, dispatched=st.booleans())
def test_live_is_as_the_domain_lists_it(state: State, dispatched: bool) -> None:
    listed = {"INTENT_RECORDED", "DISPATCHED", "UNKNOWN", "FAILED_RETRYABLE"}
    assert is_live(state, dispatched=dispatched) == (
        state in listed or (state == "MANUAL_REVIEW" and dispatched)
    )


def test_a_delivery_never_turns_back_but_by_a_person() -> None:
    expected = {"PENDING": "SENT ACKED DEAD_LETTERED", "SENT": "ACKED DEAD_LETTERED", "ACKED": ""}
    expected["DEAD_LETTERED"] = "PENDING ACKED"
    for source in DeliveryState:
        targets = {target for before, target in DELIVERY_MOVES if before is source}
        assert targets == set(expected[source].split())


PLANT = """
    UPDATE ledger_attempt SET state = %(state)s, reason = 'unknown', confirmed_by = 'agent',
        failed_by = 'agent', maybe_sent = %(maybe_sent)s, next_check_at = now(),
        dispatched_at = CASE WHEN %(dispatched)s THEN now() END,
        lease_until = CASE WHEN %(state)s = 'DISPATCHED' THEN now() END
    WHERE id = %(id)s
"""
MOVE = """
    UPDATE ledger_attempt SET state = %(target)s,
        dispatched_at = CASE WHEN %(target)s = 'DISPATCHED' THEN coalesce(dispatched_at, now())
                             ELSE dispatched_at END,
        lease_until = CASE WHEN %(target)s = 'DISPATCHED' THEN now() END
    WHERE id = %(id)s
"""


@pytest.mark.django_db
def test_the_triggers_refuse_what_the_table_refuses() -> None:
    """Every pair of states under every fact, each tried for real and undone."""
    attempt = make.unknown(cast().key)
    for source, target in product(State, State):
        for dispatched, maybe_sent, conflict in product((False, True), repeat=3):
            if source is target or (source is State.DISPATCHED and not dispatched):
                continue
            facts = {"dispatched": dispatched, "maybe_sent": maybe_sent, "conflict": conflict}
            allowed = _database_allows(attempt, source, target, **facts)
            assert allowed == may(source, target, **facts), (source, target, facts)


def _database_allows(
    attempt: Attempt, source: State, target: State, *, dispatched: bool, maybe_sent: bool, conflict: bool
) -> bool:
    planted: dict[str, str | bool] = {
        "id": attempt.pk,
        "state": str(source),
        "dispatched": dispatched,
        "maybe_sent": maybe_sent,
    }
    reason = "conflicting_evidence" if conflict else "unknown"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(PLANT, planted)
        cursor.execute("UPDATE ledger_reviewitem SET reason = %s WHERE attempt_id = %s", [reason, attempt.pk])
        cursor.execute("SET LOCAL session_replication_role = origin")
        try:
            with transaction.atomic():
                cursor.execute(MOVE, {"id": attempt.pk, "target": target})
            refused = ""
        except IntegrityError as error:
            refused = str(error)
        transaction.set_rollback(True)
    assert not refused or "illegal move" in refused, (source, target, refused)
    return not refused


@pytest.mark.django_db
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("held", [False, True])
def test_an_attempt_is_born_only_in_a_first_state(state: State, held: bool) -> None:
    """An insert straight into another state is refused by the database, whatever wrote it."""
    attempt = make.recorded(cast().key)
    columns = [str(field.column) for field in Attempt._meta.concrete_fields]
    replaced = {
        "id": "'att_planted'", "number": "2", "state": "%(state)s", "next_check_at": "now()",
        "reason": "'approval_required'", "held_at": "CASE WHEN %(held)s THEN now() END",
    }  # fmt: skip
    select = ", ".join(replaced.get(column, f'"{column}"') for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    born = state in FIRST_STATES and (held or state is State.INTENT_RECORDED)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE ledger_attempt SET state = 'CANCELLED' WHERE id = %s", [attempt.pk])
        cursor.execute("SET LOCAL session_replication_role = origin")
        insert = f"INSERT INTO ledger_attempt ({names}) SELECT {select} FROM ledger_attempt WHERE id = %(id)s"  # noqa: S608
        try:
            with transaction.atomic():
                cursor.execute(insert, {"id": attempt.pk, "state": state, "held": held})
            inserted = True
        except IntegrityError:
            inserted = False
        transaction.set_rollback(True)
    assert inserted == born
