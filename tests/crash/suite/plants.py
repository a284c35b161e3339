"""Bugs that can be planted, so that the suite itself is tested: each must turn it red.

A plant is applied in the lane, after its server runs and before any child is forked: `patch` changes Python
in this process and thereby in every child, `sql` changes the lane's own database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psycopg

from ledger.management.local.home import Home
from tests.crash.suite import bugs, shapes
from tests.crash.suite.kinds import KINDS_OF_FAULT
from tests.crash.suite.plan import Plan

Shape = Callable[[int], Plan]


@dataclass(frozen=True)
class Plant:
    """One bug. `missing`: what the product then lacks, in a few words; `shape`: the n-th plan, from 1, that
    is worth trying; `shows`: how what is found begins where it was this bug, any of them; `guards`: other
    safeguards that catch it and are removed with it."""

    missing: str
    patch: Callable[[], None]
    shape: Shape
    shows: tuple[str, ...]
    guards: str = ""
    sql: str = ""


def plant(name: str, home: Home) -> None:
    """Plant the bug of this name in this lane. KeyError where there is none."""
    bug = PLANTS[name]
    bug.patch()
    if bug.sql:
        with psycopg.connect(home.database_url, autocommit=True) as connection:
            connection.execute(bug.sql.encode())


def _without_triggers(table: str, name: str) -> str:
    """The triggers of this name carry a hash in the database."""
    return f"""
        DO $$ DECLARE trigger_name text; BEGIN
            FOR trigger_name IN SELECT tgname FROM pg_trigger
                WHERE tgrelid = '{table}'::regclass AND tgname LIKE 'pgtrigger_{name}%' LOOP
                EXECUTE format('ALTER TABLE {table} DISABLE TRIGGER %I', trigger_name);
            END LOOP;
        END $$;
    """  # noqa: S608


_NO_UNIQUE_INDEX = """
    DROP INDEX one_live_attempt;
    DROP INDEX one_confirmed_attempt;
    DROP INDEX attempt_number;
"""
_NO_CHAIN = f"""
    DROP INDEX event_sequence;
    {_without_triggers("ledger_event", "next_in_chain")}
"""

EFFECTS, UNTRUE, LOST = (KINDS_OF_FAULT[kind] for kind in ("effects", "untrue", "lost"))
HISTORY, UNDELIVERED, ERRORS = (KINDS_OF_FAULT[kind] for kind in ("history", "undelivered", "errors"))

PLANTS: Mapping[str, Plant] = {
    "no operation lock": Plant(
        "verbs about one operation interleave",
        bugs.no_operation_lock,
        shapes.two_verbs_at_once,
        (ERRORS,),
    ),
    "no unique index": Plant(
        "the database allows two live and two confirmed attempts",
        bugs.no_locks_no_old_state,
        shapes.two_senders_at_once,
        ("fsck findings: every_move_is_legal", "fsck findings: histories_are_whole", EFFECTS),
        guards="all row locks, the old state in a move's WHERE, columns set once, the chain of events",
        sql=_NO_UNIQUE_INDEX + _NO_CHAIN + _without_triggers("ledger_attempt", "set_once"),
    ),
    "successor opened at approval": Plant(
        "the next attempt waits while the last one may have happened",
        bugs.successor_at_approval,
        shapes.sent_for_nothing,
        ("fsck findings: successors_open_in_their_leave",),
    ),
    "retry on UNKNOWN": Plant(
        "leave again, although UNKNOWN",
        bugs.leave_for_unknown,
        shapes.sent_and_died,
        (EFFECTS,),
    ),
    "lease end is a failure": Plant(
        "a timer makes FAILED_RETRYABLE",
        bugs.lease_end_is_a_failure,
        shapes.sent_and_died,
        (EFFECTS,),
    ),
    "one negative look-up enough": Plant(
        "no settle window, no second *absent*",
        bugs.one_negative_is_enough,
        shapes.seen_late,
        (EFFECTS,),
    ),
    "canary ignored": Plant(
        "*absent* from a look-up that sees nothing",
        bugs.absent_without_canary,
        shapes.not_allowed_to_look,
        (EFFECTS,),
    ),
    "digest unchecked": Plant(
        "an approval outlives the rule it was given under",
        bugs.digest_unchecked,
        shapes.rule_changes,
        ("fsck findings: uses_equal_what_was_sent",),
    ),
    "epoch ignored": Plant(
        "a stopped reconciler decides",
        bugs.epoch_ignored,
        shapes.reconciler_stopped,
        (HISTORY,),
    ),
    "deadline by now()": Plant(
        "the transaction's start instead of the time after the last lock",
        bugs.deadline_by_now,
        shapes.reporter_stopped,
        (HISTORY,),
    ),
    "approval used after a rollback": Plant(
        "its use outlives the rollback of its leave",
        bugs.approval_spent_apart,
        shapes.leave_rolled_back,
        ("fsck findings: approvals_are_used_at_most_once",),
        guards="the lock on the approval",
    ),
    "approval not spent": Plant(
        "one approval, several sends",
        bugs.approval_not_spent,
        shapes.approved_send,
        ("fsck findings: first_sends_seen_by_people_use_an_approval",),
        guards="the trigger held_goes_with_approval",
        sql=_without_triggers("ledger_attempt", "held_goes_with_approval"),
    ),
    "budget reset on resume": Plant(
        "a run opened again has spent nothing",
        bugs.budget_reset_on_resume,
        shapes.resumed_run,
        ("fsck findings: accounts_are_the_sums_of_their_entries",),
    ),
    "leave told before commit": Plant(
        "the request goes out before leave is kept",
        bugs.leave_before_commit,
        shapes.leave_lost,
        (EFFECTS, LOST),
    ),
    "outcome told before commit": Plant(
        "an outcome is acknowledged before it is kept",
        bugs.outcome_before_commit,
        shapes.outcome_lost,
        (LOST,),
    ),
    "authority asked once": Plant(
        "leave with a key that was narrowed since the intent",
        bugs.authority_asked_once,
        shapes.key_narrowed,
        (HISTORY,),
    ),
    "provider key made up": Plant(
        "the provider cannot tell a second send from the first",
        bugs.key_made_up,
        shapes.seen_very_late,
        (EFFECTS,),
    ),
    "late success ignored": Plant(
        "a receipt after the lease settles nothing",
        bugs.late_success_ignored,
        shapes.late_receipt,
        (HISTORY,),
    ),
    "failed there is done": Plant(
        "what its provider could not do is confirmed",
        bugs.failed_there_is_done,
        shapes.taken_and_failed,
        (UNTRUE,),
    ),
    "unreadable is absent": Plant(
        "a look-up that could not be read counts as *absent*",
        bugs.unreadable_is_absent,
        shapes.done_and_unreadable,
        (UNTRUE,),
    ),
    "webhook id per try": Plant(
        "a consumer cannot tell a second try from the first",
        bugs.webhook_id_per_try,
        shapes.told_again,
        (HISTORY,),
    ),
    "delivery after the settlement": Plant(
        "deliveries are written in the settling transaction",
        bugs.deliveries_after_the_settlement,
        shapes.settled_and_died,
        (UNDELIVERED,),
    ),
    "acknowledged before it is sent": Plant(
        "a try is received when it is answered",
        bugs.acknowledged_before_it_is_sent,
        shapes.claimed_and_died,
        (UNDELIVERED,),
    ),
    "dead letter without owner": Plant(
        "a failure is tried again, and a dead letter has an owner",
        bugs.dead_without_owner,
        shapes.refused_once,
        ("fsck findings: dead_letters_have_reason_and_owner",),
        guards="the constraint dead_has_reason_and_owner",
        sql="ALTER TABLE ledger_delivery DROP CONSTRAINT dead_has_reason_and_owner",
    ),
}
