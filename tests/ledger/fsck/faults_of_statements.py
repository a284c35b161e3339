"""Faults in what people said became of something sent, and in what was relinked."""

from __future__ import annotations

from ledger.queries.invariants import relinks, statements
from tests.ledger.fsck.fault import Fault

STATEMENTS = (
    Fault(
        relinks.relinked_attempts_are_superseded_for_the_same_tool,
        "recorded",
        "UPDATE ledger_attempt SET relinked_to_id = %(operation_confirmed)s WHERE id = %(recorded)s",
    ),
    Fault(
        relinks.relinks_never_lead_back,
        "operation:confirmed",
        "UPDATE ledger_attempt SET relinked_to_id = %(operation_confirmed)s WHERE id = %(recorded)s; "
        "UPDATE ledger_attempt SET relinked_to_id = %(operation_recorded)s WHERE id = %(confirmed)s",
    ),
    Fault(
        statements.words_that_settled_were_said_by_enough_people,
        "paid_by_word",
        "UPDATE ledger_statement SET by_id = (SELECT min(by_id) FROM ledger_statement "
        "WHERE attempt_id = %(paid_by_word)s) WHERE attempt_id = %(paid_by_word)s",
    ),
    Fault(
        statements.statements_are_decisions_of_who_said_them,
        "statement:confirmed_by_person",
        "UPDATE ledger_decision SET kind = 'note' WHERE attempt_id = %(confirmed_by_person)s",
    ),
    Fault(
        statements.statements_are_decisions_of_who_said_them,
        "statement:confirmed_by_person",
        "UPDATE ledger_decision SET why = '' WHERE attempt_id = %(confirmed_by_person)s; "
        "UPDATE ledger_statement SET reference = '' WHERE attempt_id = %(confirmed_by_person)s",
    ),
    Fault(
        statements.statements_stand_while_their_question_is_open,
        "statement:confirmed_by_person",
        "UPDATE ledger_statement SET ended_at = NULL, ended_how = '' "
        "WHERE attempt_id = %(confirmed_by_person)s",
    ),
)
