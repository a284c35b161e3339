"""The triggers through which the database itself says no; the moves come from `ledger.rules.states`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pgtrigger

from ledger.rules.chain import CHAIN_START
from ledger.rules.states import DELIVERY_MOVES, MOVES, Guard

_STATE = pgtrigger.UpdateOf("state")  # type: ignore[no-untyped-call]

_SENT = "(NEW.dispatched_at IS NOT NULL OR NEW.maybe_sent)"

_GUARD_SQL = {
    Guard.ALWAYS: "TRUE",
    Guard.HELD: f"NOT {_SENT}",
    Guard.SENT: _SENT,
    Guard.MAYBE_SENT: "NEW.maybe_sent",
    Guard.CONFLICT: (
        "EXISTS (SELECT 1 FROM ledger_reviewitem item WHERE item.attempt_id = NEW.id "
        "AND item.closed_at IS NULL AND item.reason = 'conflicting_evidence')"
    ),
}


def _moves_sql(moves: Iterable[tuple[str, str, str]]) -> str:
    by_source: dict[str, list[str]] = defaultdict(list)
    for source, target, guard in moves:
        by_source[source].append(f"(NEW.state = '{target}' AND {guard})")
    rows = [f"(OLD.state = '{source}' AND ({' OR '.join(legal)}))" for source, legal in by_source.items()]
    return "\n OR ".join(rows)


def _refuse(unless: str, message: str) -> str:
    return f"IF NOT ({unless}) THEN RAISE EXCEPTION '{message}' USING ERRCODE = 'check_violation'; END IF; "


def legal_attempt_moves() -> pgtrigger.Trigger:
    """A state change of an attempt is one of the table's moves."""
    legal = _moves_sql((move.source, move.target, _GUARD_SQL[move.guard]) for move in MOVES)
    return pgtrigger.Trigger(
        name="legal_move",
        when=pgtrigger.Before,
        operation=_STATE,
        condition=pgtrigger.Condition("(OLD.state IS DISTINCT FROM NEW.state)"),
        func=_refuse(legal, "illegal move of an attempt") + "RETURN NEW;",
    )


def first_attempt_state() -> pgtrigger.Trigger:
    """An attempt is born INTENT_RECORDED, or held: MANUAL_REVIEW with nothing sent."""
    leaseless = "NEW.dispatched_at IS NULL AND NEW.lease_until IS NULL"
    unsettled = "NEW.confirmed_by = '' AND NEW.failed_by = ''"
    state = "NEW.state = 'INTENT_RECORDED' OR (NEW.state = 'MANUAL_REVIEW' AND NEW.held_at IS NOT NULL)"
    return pgtrigger.Trigger(
        name="first_state",
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        func=_refuse(
            f"{leaseless} AND {unsettled} AND ({state})", "an attempt is born INTENT_RECORDED or held"
        )
        + "RETURN NEW;",
    )


def legal_delivery_moves() -> pgtrigger.Trigger:
    """A state change of a delivery is one of the second machine's moves."""
    legal = _moves_sql((source, target, "TRUE") for source, target in DELIVERY_MOVES)
    return pgtrigger.Trigger(
        name="legal_move",
        when=pgtrigger.Before,
        operation=_STATE,
        condition=pgtrigger.Condition("(OLD.state IS DISTINCT FROM NEW.state)"),
        func=_refuse(legal, "illegal move of a delivery") + "RETURN NEW;",
    )


def first_delivery_state() -> pgtrigger.Trigger:
    """A delivery is born PENDING."""
    return pgtrigger.Trigger(
        name="first_state",
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        func=_refuse("NEW.state = 'PENDING'", "a delivery is born PENDING") + "RETURN NEW;",
    )


def fixed_columns(*columns: str, name: str = "fixed_columns", unless: str = "FALSE") -> pgtrigger.Trigger:
    """These columns never change after the insert (but where `unless` holds)."""
    changed = " OR ".join(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in columns)
    return pgtrigger.Trigger(
        name=name,
        when=pgtrigger.Before,
        operation=pgtrigger.Update,
        condition=pgtrigger.Condition(f"({changed})"),
        func=_refuse(unless, f"{name}: these columns never change") + "RETURN NEW;",
    )


def set_once(*columns: str) -> pgtrigger.Trigger:
    """These columns, once not null, never change again."""
    rewritten = " OR ".join(
        f"(OLD.{column} IS NOT NULL AND OLD.{column} IS DISTINCT FROM NEW.{column})" for column in columns
    )
    return pgtrigger.Trigger(
        name="set_once",
        when=pgtrigger.Before,
        operation=pgtrigger.Update,
        condition=pgtrigger.Condition(f"({rewritten})"),
        func=_refuse("FALSE", "these columns are set once") + "RETURN NEW;",
    )


def never_deleted() -> pgtrigger.Trigger:
    """Rows of this table stay."""
    return pgtrigger.Protect(name="never_deleted", operation=pgtrigger.Delete)


def never_changed() -> pgtrigger.Trigger:
    """Rows of this table stay as they were written, or go."""
    return pgtrigger.Protect(name="never_changed", operation=pgtrigger.Update)


def kept_for(column: str, *, days: int) -> pgtrigger.Trigger:
    """Rows of this table are not deleted before this many days after the time in `column`."""
    old_enough = f"OLD.{column} < clock_timestamp() - interval '{days} days'"
    return pgtrigger.Trigger(
        name="kept_a_while",
        when=pgtrigger.Before,
        operation=pgtrigger.Delete,
        func=_refuse(old_enough, "this row is too young to be deleted") + "RETURN OLD;",
    )


def append_only() -> tuple[pgtrigger.Trigger, ...]:
    """Rows of this table are written once and stay as they are."""
    return (
        pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete),
        never_truncated(),
    )


def never_truncated() -> pgtrigger.Trigger:
    """TRUNCATE passes no row trigger. Tests, which empty tables between cases, allow it by a setting."""
    allowed = "COALESCE(current_setting('ledger.allow_truncate', TRUE), '') = 'on'"
    return pgtrigger.Trigger(
        name="never_truncated",
        level=pgtrigger.Statement,
        when=pgtrigger.Before,
        operation=pgtrigger.Truncate,
        func=_refuse(allowed, "this table is never truncated") + "RETURN NULL;",
    )


def next_in_chain() -> pgtrigger.Trigger:
    """An event follows the newest one of its operation, by number and by hash."""
    follows = (
        f"(NEW.sequence = 1 AND NEW.previous_hash = '{CHAIN_START}') OR EXISTS (SELECT 1 FROM ledger_event e "
        "WHERE e.operation_id = NEW.operation_id AND e.sequence = NEW.sequence - 1 "
        "AND e.hash = NEW.previous_hash)"
    )
    return pgtrigger.Trigger(
        name="next_in_chain",
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        func=_refuse(follows, "an event follows the one before it") + "RETURN NEW;",
    )


def open_question_has_item() -> pgtrigger.Trigger:
    """At commit an UNKNOWN or MANUAL_REVIEW attempt has its open item, and no other has one but a
    conflict."""
    return pgtrigger.Trigger(
        name="open_question_has_item",
        when=pgtrigger.After,
        timing=pgtrigger.Deferred,
        operation=pgtrigger.Insert | _STATE,
        declare=[("now_state", "TEXT"), ("item_reason", "TEXT")],
        func=(
            "SELECT state INTO now_state FROM ledger_attempt WHERE id = NEW.id; "
            "SELECT reason INTO item_reason FROM ledger_reviewitem "
            "WHERE attempt_id = NEW.id AND closed_at IS NULL; "
            + _refuse(
                "(now_state IN ('UNKNOWN', 'MANUAL_REVIEW')) = (item_reason IS NOT NULL) "
                "OR item_reason = 'conflicting_evidence'",
                "an open question has exactly one open review item",
            )
            + "RETURN NULL;"
        ),
    )


def question_closes_with_its_attempt() -> pgtrigger.Trigger:
    """At commit, a closed item leaves no UNKNOWN or MANUAL_REVIEW attempt without an open one."""
    return pgtrigger.Trigger(
        name="question_closes_with_its_attempt",
        when=pgtrigger.After,
        timing=pgtrigger.Deferred,
        operation=pgtrigger.UpdateOf("closed_at"),  # type: ignore[no-untyped-call]
        func=(
            _refuse(
                "NOT EXISTS (SELECT 1 FROM ledger_attempt attempt WHERE attempt.id = NEW.attempt_id "
                "AND attempt.state IN ('UNKNOWN', 'MANUAL_REVIEW')) "
                "OR EXISTS (SELECT 1 FROM ledger_reviewitem item "
                "WHERE item.attempt_id = NEW.attempt_id AND item.closed_at IS NULL)",
                "an open question keeps an open review item",
            )
            + "RETURN NULL;"
        ),
    )


def held_goes_with_approval() -> pgtrigger.Trigger:
    """At commit, what was ever held and then DISPATCHED has used an approval."""
    return pgtrigger.Trigger(
        name="held_goes_with_approval",
        when=pgtrigger.After,
        timing=pgtrigger.Deferred,
        operation=_STATE,
        condition=pgtrigger.Condition("(NEW.state = 'DISPATCHED' AND NEW.held_at IS NOT NULL)"),
        func=(
            _refuse(
                "EXISTS (SELECT 1 FROM ledger_approvaluse used WHERE used.attempt_id = NEW.id)",
                "a held attempt is sent with an approval",
            )
            + "RETURN NULL;"
        ),
    )


def used_for_what_it_approved() -> pgtrigger.Trigger:
    """An approval is used by a send of its own operation, once, and not after it was voided."""
    return pgtrigger.Trigger(
        name="used_for_what_it_approved",
        when=pgtrigger.Before,
        operation=pgtrigger.Insert,
        func=(
            _refuse(
                "EXISTS (SELECT 1 FROM ledger_approval approval JOIN ledger_attempt attempt "
                "ON attempt.operation_id = approval.operation_id "
                "WHERE approval.id = NEW.approval_id AND attempt.id = NEW.attempt_id "
                "AND approval.voided_at IS NULL AND approval.used_at IS NOT NULL)",
                "an approval is used for what it approved",
            )
            + "RETURN NEW;"
        ),
    )
