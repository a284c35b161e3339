"""The verbs, and the only writer of attempt state. Call each inside `ledger.transactions.durable`."""

from ledger.lifecycle.approving import approve
from ledger.lifecycle.cancelling import cancel_operation
from ledger.lifecycle.case import unlocked_case
from ledger.lifecycle.decisions import (
    confirm_did_not_happen,
    confirm_happened,
    decide_conflict,
    recheck,
    reject,
)
from ledger.lifecycle.escalating import escalate_before_key_window_closes
from ledger.lifecycle.finding_many import PLAIN, Answered, confirm_plain
from ledger.lifecycle.findings import Asked, apply_answer
from ledger.lifecycle.intents import record_intent
from ledger.lifecycle.leave import give_leave, give_leave_to_ledger, leave_still_holds
from ledger.lifecycle.offers import Offer, offers_for
from ledger.lifecycle.outcomes import (
    declare_worker_dead,
    extend_lease,
    record_outcome,
    record_own_outcome,
    record_provider_request,
)
from ledger.lifecycle.ownership import (
    LONGEST_SNOOZE,
    assign,
    assign_by_rules,
    claim,
    hand_over,
    note,
    release,
    snooze,
    take_over,
    wait_on,
    wake,
)
from ledger.lifecycle.parked_notes import dismiss_parked, note_parked
from ledger.lifecycle.parking import join_late, take_outcome, take_provider_request
from ledger.lifecycle.relinking import intended_repeat, relink_arguments, relink_record
from ledger.lifecycle.relinking_operations import relink_operation
from ledger.lifecycle.runs import open_run, record_run_checkpoint, record_usage
from ledger.lifecycle.standing import standing_of
from ledger.lifecycle.timers import end_approval, end_send_lease, end_wait_for_agent
from ledger.lifecycle.twins import twins_of
from ledger.lifecycle.values import (
    CheckpointNotGrowing,
    Decided,
    DecisionRefused,
    Intent,
    IntentAnswer,
    IntentKind,
    Kept,
    LeaveGiven,
    LeaveProblem,
    LeaveRefused,
    NoRoomToPark,
    OutcomeAnswer,
    OutcomeReport,
    RunAnswer,
    Standing,
    Told,
    UnknownObject,
)
from ledger.lifecycle.voiding import end_changed_votes, has_changed_votes
from ledger.lifecycle.waiting import keep_waiting
from ledger.lifecycle.withdrawing import Leaving, Withdrawn, items_in_hand, votes_standing, withdraw

__all__ = [
    "LONGEST_SNOOZE",
    "PLAIN",
    "Answered",
    "Asked",
    "CheckpointNotGrowing",
    "Decided",
    "DecisionRefused",
    "Intent",
    "IntentAnswer",
    "IntentKind",
    "Kept",
    "LeaveGiven",
    "LeaveProblem",
    "LeaveRefused",
    "Leaving",
    "NoRoomToPark",
    "Offer",
    "OutcomeAnswer",
    "OutcomeReport",
    "RunAnswer",
    "Standing",
    "Told",
    "UnknownObject",
    "Withdrawn",
    "apply_answer",
    "approve",
    "assign",
    "assign_by_rules",
    "cancel_operation",
    "claim",
    "confirm_did_not_happen",
    "confirm_happened",
    "confirm_plain",
    "decide_conflict",
    "declare_worker_dead",
    "dismiss_parked",
    "end_approval",
    "end_changed_votes",
    "end_send_lease",
    "end_wait_for_agent",
    "escalate_before_key_window_closes",
    "extend_lease",
    "give_leave",
    "give_leave_to_ledger",
    "hand_over",
    "has_changed_votes",
    "intended_repeat",
    "items_in_hand",
    "join_late",
    "keep_waiting",
    "leave_still_holds",
    "note",
    "note_parked",
    "offers_for",
    "open_run",
    "recheck",
    "record_intent",
    "record_outcome",
    "record_own_outcome",
    "record_provider_request",
    "record_run_checkpoint",
    "record_usage",
    "reject",
    "release",
    "relink_arguments",
    "relink_operation",
    "relink_record",
    "snooze",
    "standing_of",
    "take_outcome",
    "take_over",
    "take_provider_request",
    "twins_of",
    "unlocked_case",
    "votes_standing",
    "wait_on",
    "wake",
    "withdraw",
]
