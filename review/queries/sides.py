"""Both sides of a question: what people say became of it, and the facts that contradict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.lifecycle.statements import needed_for
from ledger.models import Attempt, Decision, Event, Statement, User
from ledger.rules.masks import Veil
from ledger.rules.statements import Ended, Says
from ledger.rules.vocabulary import EventKind
from review.queries.history import lookup_view
from review.queries.page import FactView, Sides, StatementView
from review.queries.words import plain

SAYS_WORDS = {Says.HAPPENED: "it happened", Says.DID_NOT: "it did not happen"}
_CONTRADICTING = 20


def sides_of(attempt: Attempt, decisions: Sequence[Decision], veil: Veil, user: User) -> Sides:
    """`decisions`: of the attempt, newest first, with their statements. One query where people said something
    or the facts contradict each other, else none."""
    said = [decision for decision in reversed(decisions) if hasattr(decision, "statement")]
    return Sides(
        needed=needed_for(attempt) if attempt.was_sent else 1,
        statements=tuple(_view(decision, veil, user) for decision in said),
        facts=tuple(_facts(attempt, veil)) if said else (),
    )


def _view(decision: Decision, veil: Veil, user: User) -> StatementView:
    statement: Statement = decision.statement
    return StatementView(
        by=decision.by.get_username(),
        is_mine=statement.by_id == user.pk,
        at=statement.at,
        words=SAYS_WORDS[Says(statement.says)],
        happened=statement.says == Says.HAPPENED,
        reference=veil.over_text(statement.reference),
        note=veil.over_text(decision.why),
        look_up=lookup_view(statement.look_up, veil) if statement.look_up else None,
        ended=statement.ended_how,
        settled=statement.ended_how == Ended.SETTLED,
        contradicted_at=statement.contradicted_at,
    )


def _facts(attempt: Attempt, veil: Veil) -> Iterator[FactView]:
    events = attempt.events.filter(kind=EventKind.CONFLICT).order_by("-sequence")[:_CONTRADICTING]
    for event in events:
        yield FactView(event.at, event.actor, veil.over_text(_words(event)))


def _record_words(record: dict[str, str]) -> str:
    name, content, state = record["reference"] or "a record", record["content"], plain(record["state"])
    return f"the provider has {name} ({content} content, {state})"


def _words(event: Event) -> str:
    """What a conflict's event names: the provider's records, or the references of a report."""
    data = event.data
    records = data.get("records")
    if records:
        return "; ".join(map(_record_words, records))
    named = [data[name] for name in ("reference", "result_ref", "provider_request_id") if data.get(name)]
    return f"names {', '.join(dict.fromkeys(named))}" if named else "says otherwise"
