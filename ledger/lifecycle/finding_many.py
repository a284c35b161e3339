"""Apply many answers of look-ups in one transaction, where they say what most say: it happened, just so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from ledger.budgets import BooksOfMany
from ledger.events import RECONCILER
from ledger.lifecycle.case import Case
from ledger.lifecycle.findings import Asked, follow, what_follows
from ledger.lifecycle.pen import Together
from ledger.lifecycle.settling import settle
from ledger.models import Approval, Attempt, Event, Operation, ReviewItem, Statement, Vote
from ledger.rules.looked_up import LookedUp
from ledger.rules.reconcile import Follows
from ledger.rules.reports import Reported
from ledger.rules.states import State
from ledger.rules.vocabulary import EventKind, ReviewReason
from ledger.transactions import database_clock, one_reading, require_transaction

PLAIN = "confirmed"
"""The row of the recovery table that is applied to many together."""


@dataclass(frozen=True)
class Answered:
    """One answer, as `findings.apply_answer` takes it."""

    attempt_id: str
    operation_id: str
    asked: Asked
    looked_up: LookedUp


def confirm_plain(answers: Iterable[Answered]) -> set[str]:
    """Confirm the only attempts of their operations of which the provider says so, and no person has said
    anything. Returns their ids. Whoever is missing is to be applied alone: another row decides, somebody
    works on it at this moment, or somebody else asks by now."""
    require_transaction()
    by_operation = {answer.operation_id: answer for answer in answers}
    pen = Together()
    with one_reading():  # of policies and destinations: nothing here changes those
        found = [(case, by_operation[case.operation.pk]) for case in _cases(by_operation, pen)]
        plain = [(case, answer, said) for case, answer in found if (said := _if_plain(case, answer))]
        cases = [case for case, _, _ in plain]
        books = _books_of(cases)
        for case, answer, said in plain:
            case.books = books
            follow(case, case.newest, answer.asked, answer.looked_up, said)
            settle(case)
    if cases:
        books.write()
        pen.write(now=cases[0].now)
    return {case.newest.pk for case in cases}


def _if_plain(case: Case, answer: Answered) -> Follows | None:
    """What follows, where it is the plain row."""
    attempt = case.newest
    item = case.items.get(attempt.pk)
    may_be = (
        len(case.attempts) == 1
        and (attempt.pk, attempt.lookup_epoch) == (answer.attempt_id, answer.asked.epoch)
        and attempt.state == State.UNKNOWN
        and item is not None
        and item.reason == ReviewReason.UNKNOWN
        and case.unheard
    )
    follows = what_follows(case, attempt, answer.asked, answer.looked_up) if may_be else None
    return follows if follows and follows.row == PLAIN else None


def _books_of(cases: Iterable[Case]) -> BooksOfMany:
    run_ids = {case.operation.run_id for case in cases} - {None}
    return BooksOfMany([pk for pk in run_ids if pk is not None], [case.newest.pk for case in cases])


def _cases(operation_ids: Iterable[str], pen: Together) -> list[Case]:
    """Those that nobody else has locked, read in the order of locks, the clock last."""
    free = Operation.objects.filter(pk__in=list(operation_ids)).order_by("pk")
    operations = {operation.pk: operation for operation in free.select_for_update(skip_locked=True)}
    mine = {"operation__in": list(operations)}
    attempts = Attempt.objects.filter(**mine).prefetch_related("policy", "agent__owner", "agent__tenant")
    held = _by_operation(attempts.defer("args").order_by("pk").select_for_update(of=("self",)))
    open_items = ReviewItem.objects.filter(closed_at=None, **mine)
    items = _by_operation(open_items.order_by("pk").select_for_update())
    spoken_of = _spoken_of(list(operations))
    now = database_clock()
    return [
        Case(
            operation=operation,
            attempts=held.get(pk, []),
            items={item.attempt_id: item for item in items.get(pk, [])},
            approvals={},
            actor=RECONCILER,
            now=now,
            pen=pen,
            unheard=pk not in spoken_of,
        )
        for pk, operation in operations.items()
    ]


def _spoken_of(operation_ids: Sequence[str]) -> set[str]:
    """Operations of which a person has ever said anything, or an agent that it succeeded."""
    succeeded = Event.objects.filter(
        operation__in=operation_ids, kind=EventKind.OUTCOME_REPORTED, body__contains=Reported.SUCCEEDED
    )
    said: list[QuerySet[Any]] = [
        Approval.objects.filter(attempt__operation__in=operation_ids),
        Vote.objects.filter(attempt__operation__in=operation_ids),
        Statement.objects.filter(attempt__operation__in=operation_ids),
    ]
    by_people = {pk for rows in said for pk in rows.values_list("attempt__operation_id", flat=True)}
    return by_people | set(succeeded.values_list("operation_id", flat=True))


def _by_operation(rows: Iterable[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.operation_id, []).append(row)
    return found
