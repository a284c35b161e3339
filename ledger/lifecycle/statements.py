"""Take down what a person says became of something sent, and let it settle once enough people agree."""

from __future__ import annotations

from dataclasses import dataclass

from ledger import approvals
from ledger.lifecycle.case import Case
from ledger.models import Attempt, Event, LookUp, Statement, User
from ledger.policies import rule_now, rule_of
from ledger.rules.statements import Ended, Said, Says, Verdict, ended_by, people_needed, verdict
from ledger.rules.states import State
from ledger.rules.vocabulary import ConfirmedBy, FailedBy
from ledger.transactions import remembered


@dataclass(frozen=True)
class Evidence:
    """What a person's word rests on beside their note."""

    reference: str = ""
    look_up: LookUp | None = None


def needed_for(attempt: Attempt) -> int:
    """How many people must say the same, by its own rule and by the one in force."""
    return people_needed(rule_of(attempt).effect, rule_now(attempt).effect)


@remembered
def standing_statements(attempt: Attempt) -> list[Statement]:
    """The statements that still count, oldest first."""
    return list(attempt.statements.filter(ended_at=None).select_related("by").order_by("at", "pk"))


def weigh(case: Case, attempt: Attempt, by: User, says: Says, reference: str) -> Verdict:
    """What this person's word leads to, together with those of others that still count. What the same person
    said before, and what somebody said who may no longer decide, ends here."""
    others = []
    for statement in standing_statements(attempt):
        if statement.by_id == by.pk:
            _end(case, statement, Ended.REPLACED)
        elif not approvals.may_decide(statement.by_id, attempt.tenant_id):
            _end(case, statement, Ended.RIGHT_LOST)
        else:
            others.append(Said(statement.by_id, Says(statement.says), statement.reference))
    return verdict([*others, Said(by.pk, says, reference)], needed=needed_for(attempt))


def end_statements(case: Case, attempt: Attempt, to: State, event: Event) -> None:
    """The attempt has moved where no question is open: it bears every statement out, or contradicts it."""
    for statement in standing_statements(attempt):
        how = ended_by(Says(statement.says), to)
        _end(case, statement, how, contradicted_by=event if how is Ended.CONTRADICTED else None)


def contradict_statements(case: Case, attempt: Attempt, event: Event) -> None:
    """A fact says otherwise than the people on whose word this final state rests: it is counted, and they
    find it among their own work."""
    says = _rests_on(attempt)
    if says:
        settled = attempt.statements.filter(says=says, ended_how=Ended.SETTLED, contradicted_at=None)
        settled.update(contradicted_at=case.now, contradicted_by=event)


def _rests_on(attempt: Attempt) -> str:
    """What people said of an attempt whose final state rests on their word; empty where none does."""
    if attempt.state == State.OUTCOME_CONFIRMED and attempt.confirmed_by == ConfirmedBy.OPERATOR:
        return Says.HAPPENED
    if attempt.state == State.FAILED and attempt.failed_by == FailedBy.OPERATOR:
        return Says.DID_NOT
    return ""


def _end(case: Case, statement: Statement, how: Ended, *, contradicted_by: Event | None = None) -> None:
    statement.ended_at, statement.ended_how = case.now, how
    if contradicted_by is not None:
        statement.contradicted_at, statement.contradicted_by = case.now, contradicted_by
    statement.save(update_fields=["ended_at", "ended_how", "contradicted_at", "contradicted_by"])
