"""One operation under lock, with everything a verb may read or change of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import QuerySet

from ledger import events
from ledger.budgets import Books
from ledger.events import SYSTEM, Actor
from ledger.lifecycle.pen import AtOnce, Pen
from ledger.models import Approval, Attempt, Event, Operation, ReviewItem
from ledger.rules.states import State, is_live
from ledger.rules.vocabulary import EventKind, ReviewReason
from ledger.transactions import database_clock, remembered


@dataclass
class Case:
    """A locked operation. `now` is the database's time after the last lock."""

    operation: Operation
    attempts: list[Attempt]
    items: dict[str, ReviewItem]
    approvals: dict[str, Approval]
    actor: Actor
    now: datetime
    moved: bool = field(default=False)
    pen: Pen = field(default_factory=AtOnce)
    unheard: bool = False
    """Is it known that no agent has said it succeeded, and no person has said anything?"""
    books: Books = field(default_factory=Books)

    def attempt(self, attempt_id: str) -> Attempt:
        return next(attempt for attempt in self.attempts if attempt.pk == attempt_id)

    @property
    def confirmed(self) -> Attempt | None:
        return next((a for a in self.attempts if a.state == State.OUTCOME_CONFIRMED), None)

    @property
    def newest(self) -> Attempt:
        return self.attempts[-1]

    def live(self) -> Attempt | None:
        """The attempt that occupies the live place of the operation."""
        return next((a for a in self.attempts if is_live_attempt(a)), None)

    @property
    def sends(self) -> int:
        """How many attempts were given leave."""
        return sum(attempt.dispatched_at is not None for attempt in self.attempts)

    def descendants(self, attempt: Attempt) -> list[Attempt]:
        """The attempts that descend from this one, oldest first, itself left out."""
        line = {attempt.pk}
        found = []
        for later in self.attempts:
            if later.descends_from_id in line:
                line.add(later.pk)
                found.append(later)
        return found

    def ancestors(self, attempt: Attempt) -> list[Attempt]:
        """The attempt itself and those that it descends from, newest first."""
        line = [attempt]
        while line[-1].descends_from_id:
            line.append(self.attempt(line[-1].descends_from_id))
        return line

    def ever_held(self, attempt: Attempt) -> bool:
        """Was it, or what it descends from, ever held? Then people see each send first."""
        return any(one.held_at is not None for one in self.ancestors(attempt))

    def speaker(self, attempt: Attempt) -> Attempt:
        """Who answers for this content: the newest of its line, or the sent live one while there is one. Of a
        line whose last send was replaced, or failed, where a correction of an earlier attempt lives: that."""
        line = [attempt, *self.descendants(attempt)]
        sent_live = [a for a in line if a.was_sent and is_live_attempt(a)]
        if sent_live:
            return sent_live[-1]
        newest, live = line[-1], self.live()
        is_over = newest.state == State.SUPERSEDED or (newest.state == State.FAILED and newest.was_sent)
        family = self.descendants(self.ancestors(attempt)[-1])
        return live if is_over and live is not None and live in family else newest

    @property
    def has_open_conflict(self) -> bool:
        """Does an open item say that what is known contradicts itself?"""
        return any(item.reason == ReviewReason.CONFLICTING_EVIDENCE for item in self.items.values())

    def undecided_send_beside(self, attempt: Attempt) -> bool:
        """May another attempt, not yet decided, have been sent without leave?"""
        return any(
            other.maybe_sent and other.pk != attempt.pk and other.pk in self.items for other in self.attempts
        )

    def held_variant(self) -> Attempt | None:
        """The held attempt that came in with other arguments under this operation's key, or was corrected.

        Only such a one is held and not the first, whatever its reason became: an approval of it may expire.
        """
        return next((a for a in self.attempts if a.is_held and a.number > 1), None)

    def record(self, kind: EventKind, attempt: Attempt | None = None, **data: object) -> Event:
        """Append one event by this case's actor, now."""
        event = events.next_event(
            self.operation, kind, actor=self.actor, now=self.now, attempt=attempt, **data
        )
        self.pen.append(event)
        return event

    def change(self, attempt: Attempt, **fields: object) -> None:
        """Write facts of an attempt other than its state."""
        for name, value in fields.items():
            setattr(attempt, name, value)
        self.pen.change(attempt, *fields)


def is_live_attempt(attempt: Attempt) -> bool:
    return is_live(State(attempt.state), dispatched=attempt.dispatched_at is not None)


def load_case(operation: Operation, actor: Actor) -> Case:
    """Everything of an operation whose row is locked (or was inserted here), in the order of locks."""
    attempts, items, approvals = _rows_of(operation)
    locked = attempts.select_for_update(of=("self",))
    return _case(operation, locked, items.select_for_update(), approvals.select_for_update(), actor)


@remembered
def unlocked_case(operation: Operation) -> Case:
    """The same read without a lock: for answers and pages, which change nothing."""
    return _case(operation, *_rows_of(operation), SYSTEM)


def _rows_of(operation: Operation) -> tuple[QuerySet[Attempt], QuerySet[ReviewItem], QuerySet[Approval]]:
    """Its attempts, its open items, its approvals that wait to be used."""
    attempts = operation.attempts.select_related("policy", "agent__owner", "agent__tenant")
    return (
        attempts.order_by("number"),
        operation.review_items.filter(closed_at=None),
        operation.approvals.filter(used_at=None, voided_at=None),
    )


def _case(
    operation: Operation,
    attempts: QuerySet[Attempt],
    items: QuerySet[ReviewItem],
    approvals: QuerySet[Approval],
    actor: Actor,
) -> Case:
    """Read in the order of locks, the clock last."""
    return Case(
        operation=operation,
        attempts=list(attempts),
        items={item.attempt_id: item for item in items},
        approvals={approval.attempt_id: approval for approval in approvals},
        actor=actor,
        now=database_clock(),
    )
