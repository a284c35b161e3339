"""What every decision of a person shares: the item under lock, the row of the decision, the event."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ledger.events import operator_actor
from ledger.faults import fault_point
from ledger.lifecycle.case import Case
from ledger.lifecycle.locking import locked_operation
from ledger.lifecycle.statements import Evidence
from ledger.lifecycle.values import Decided, DecisionRefused, UnknownObject
from ledger.models import Attempt, Decision, ReviewItem, User
from ledger.models.ids import decision_id
from ledger.rules.states import State
from ledger.rules.vocabulary import OWNERSHIP, DecisionKind, EventKind


@dataclass(frozen=True)
class Desk:
    """One review item under lock, and the person in front of it."""

    case: Case
    item: ReviewItem
    attempt: Attempt
    by: User

    def record(
        self, kind: DecisionKind, why: str, *, event: EventKind = EventKind.DECIDED, **data: Any
    ) -> Decided:
        """Write the decision's row and its event."""
        decision = Decision.objects.create(
            id=decision_id(),
            tenant_id=self.item.tenant_id,
            item=self.item,
            attempt=self.attempt,
            kind=kind,
            by=self.by,
            why=why,
            data=data,
            at=self.case.now,
        )
        said = {"decision": kind, "item": self.item.pk, "why": why, "id": decision.pk, **data}
        written = self.case.record(event, self.attempt, **said)
        return Decided(decision, written, self.item, self.attempt)


@contextmanager
def at_the_desk(item_id: str, by: User, *, ownership: bool = False) -> Iterator[Desk]:
    """Lock the operation of an item and check that it may still be decided, by this person as far as its
    claim says. Rights are the caller's to ask before. Raises `UnknownObject` and `DecisionRefused`."""
    found = ReviewItem.objects.filter(pk=item_id).values_list("operation_id", "tenant_id").first()
    if found is None:
        raise UnknownObject
    with locked_operation(found[0], tenant_id=found[1], actor=operator_actor(by)) as case:
        item = next((i for i in case.items.values() if i.pk == item_id), None)
        item = item or ReviewItem.objects.get(pk=item_id)
        desk = Desk(case, item, case.attempt(item.attempt_id), by)
        if not ownership:
            check_claim(desk)
        yield desk
        fault_point("decision.before_commit")


def check_open(desk: Desk) -> None:
    """Raise `DecisionRefused` where the question is closed; it names who closed it, how and when."""
    if desk.item.closed_at is not None:
        raise already_decided(desk)


def already_decided(desk: Desk) -> DecisionRefused:
    """The loser of a race learns who, what, when."""
    last = desk.item.decisions.exclude(kind__in=OWNERSHIP).select_related("by").order_by("-at", "-id").first()
    state = State(desk.attempt.state)
    if last is None:
        return DecisionRefused("already-decided", f"This item is closed: the attempt is now {state}.")
    who, when = last.by.get_username(), f"{last.at:%Y-%m-%d %H:%M:%S} UTC"
    return DecisionRefused(
        "already-decided", f"{who} decided this at {when}: {last.kind}. The attempt is now {state}."
    )


def check_claim(desk: Desk) -> None:
    """An item that another person has claimed must be taken over first."""
    item = desk.item
    claimed = item.claim_until is not None and desk.case.now < item.claim_until
    if claimed and item.claimed_by_id != desk.by.pk and item.claimed_by is not None:
        raise DecisionRefused(
            "claimed-by-other", f"{item.claimed_by.get_username()} has claimed this item. Take it over first."
        )


def evidence_of(desk: Desk, why: str, reference: str, look_up_id: int | None) -> Evidence:
    """What a person's word rests on: a note, a reference, the transcript of a look-up of this attempt; at
    least one. Raises `DecisionRefused`."""
    look_up = desk.attempt.lookups.filter(pk=look_up_id).first() if look_up_id else None
    refuse_unless(look_up or not look_up_id, "look-up-unknown", "This attempt has no such look-up.")
    refuse_unless(
        why.strip() or reference.strip() or look_up,
        "evidence-required",
        "Say what it rests on: a provider's reference, a note, or the transcript of a look-up.",
    )
    if reference.strip():
        check_reference(reference)
    return Evidence(reference.strip(), look_up)


def check_reference(reference: str) -> None:
    """Raise `DecisionRefused` where a person's evidence names nothing at the provider."""
    refuse_unless(reference.strip(), "reference-required", "Name the provider's reference.")
    refuse_unless(
        reference.isprintable(), "reference-unreadable", "A reference holds printable characters only."
    )


def refuse_unless(possible: object, code: str, message: str) -> None:
    if not possible:
        raise DecisionRefused(code, message)
