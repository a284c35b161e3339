"""What people say became of something sent: enough of them said what it rests on, each with evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ledger.models import Statement
from ledger.queries.invariants.published import PublishedRules
from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.rules.statements import Ended, Says, people_needed
from ledger.rules.states import OPEN_QUESTION, State

CHUNK = 1_000


def words_that_settled_were_said_by_enough_people(scope: Scope) -> Iterator[Broken]:
    """Of a dangerous effect two different people said what its final state rests on: the words that ended
    when it was entered. Those that a fact bore out, and one decision about a conflict, need no second."""
    rules = PublishedRules()
    settled = scope.rows(Statement.objects.filter(ended_how=Ended.SETTLED).select_related("attempt"))
    by_attempt = settled.order_by("attempt_id", "ended_at", "says")
    for _, given in groupby(by_attempt.iterator(chunk_size=CHUNK), key=_what_it_settled):
        said = list(given)
        attempt, people = said[0].attempt, {one.by_id for one in said}
        rule = rules.rule(attempt.tenant_id, attempt.policy_id, attempt.tool)
        if rule is not None and _is_rested_on(said[0]) and len(people) < people_needed(rule.effect):
            yield Broken(attempt.tenant_id, attempt.pk, f"rests on the word of {len(people)} people alone")


def _is_rested_on(said: Statement) -> bool:
    """Did the attempt enter its final state by this word?"""
    attempt = said.attempt
    by = {State.OUTCOME_CONFIRMED: attempt.confirmed_by, State.FAILED: attempt.failed_by}.get(
        State(attempt.state)
    )
    meant = {Says.HAPPENED: State.OUTCOME_CONFIRMED, Says.DID_NOT: State.FAILED}.get(Says(said.says))
    return by == "operator" and attempt.state == meant and said.ended_at == attempt.entered_state_at


def _what_it_settled(statement: Statement) -> tuple[str, object, str]:
    return statement.attempt_id, statement.ended_at, statement.says


def statements_are_decisions_of_who_said_them(scope: Scope) -> Iterable[Broken]:
    """And rest on a note, a reference, or a look-up of the same attempt."""
    return scope.select("""
        SELECT said.tenant_id, said.decision_id,
               'its decision is of another person, attempt or kind, or it rests on nothing of this attempt'
        FROM scoped_statement said
        LEFT JOIN ledger_decision decision ON decision.id = said.decision_id
        LEFT JOIN ledger_lookup transcript ON transcript.id = said.look_up_id
        WHERE decision.id IS NULL OR decision.by_id <> said.by_id OR decision.attempt_id <> said.attempt_id
           OR decision.kind NOT IN ('confirm_happened', 'confirm_did_not_happen', 'reject')
           OR (transcript.id IS NOT NULL AND transcript.attempt_id <> said.attempt_id)
           OR (said.look_up_id IS NULL AND said.reference = '' AND btrim(decision.why) = '')
    """)


def statements_stand_while_their_question_is_open(scope: Scope) -> Iterable[Broken]:
    sql = """
        SELECT said.tenant_id, said.decision_id, format('still stands, and the attempt is %%s', attempt.state)
        FROM scoped_statement said JOIN ledger_attempt attempt ON attempt.id = said.attempt_id
        WHERE said.ended_at IS NULL AND attempt.state <> ALL(%(open)s)
    """
    return scope.select(sql, open=[str(state) for state in OPEN_QUESTION])


CHECKS: tuple[Check, ...] = (
    words_that_settled_were_said_by_enough_people,
    statements_are_decisions_of_who_said_them,
    statements_stand_while_their_question_is_open,
)
