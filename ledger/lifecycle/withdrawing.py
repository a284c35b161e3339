"""End a person's part in a tenant's work, when a right of theirs is taken away: claims, ownership, votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet

from ledger.approvals import standing_votes
from ledger.events import Actor
from ledger.lifecycle.case import Case
from ledger.lifecycle.locking import locked_operation
from ledger.lifecycle.moves import void_approval
from ledger.models import Attempt, ReviewItem, User, Vote
from ledger.rules.vocabulary import EventKind
from ledger.rules.voiding import VoidCause
from ledger.transactions import require_transaction


@dataclass(frozen=True)
class Withdrawn:
    """How much of a person's part ended. `votes` counts those of waiting approvals, which fall with them."""

    claims: int = 0
    items: int = 0
    votes: int = 0

    def __add__(self, other: Withdrawn) -> Withdrawn:
        return Withdrawn(self.claims + other.claims, self.items + other.items, self.votes + other.votes)


@dataclass(frozen=True)
class Leaving:
    """Whose part ends and why. `still_approves`: whether their vote for this attempt stands all the same;
    `cause`: what the void ones say."""

    person: User
    why: str
    cause: VoidCause
    keeps_items: bool
    still_approves: Callable[[Attempt], bool]


def withdraw(leaving: Leaving, *, tenant_id: int, actor: Actor) -> Withdrawn:
    """Free what the person has claimed, hand their open items to the group, void their votes; each attempt
    touched has an event that says so. An approval one of whose votes falls is void.

    The operations are locked one after the other, by id.
    """
    require_transaction()
    ended = Withdrawn()
    for operation_id in _operations(leaving, tenant_id):
        with locked_operation(operation_id, tenant_id=tenant_id, actor=actor) as case:
            for attempt in list(case.attempts):
                ended += _withdraw_from(case, attempt, leaving)
    return ended


def votes_standing(person: User, tenant_id: int) -> QuerySet[Vote]:
    """The votes of this person that may still lead to a send."""
    return standing_votes().filter(tenant_id=tenant_id, approver=person)


def items_in_hand(person: User, tenant_id: int) -> QuerySet[ReviewItem]:
    """The open items this person owns or has claimed."""
    own = Q(owner=person) | Q(claimed_by=person)
    return ReviewItem.objects.filter(own, tenant_id=tenant_id, closed_at=None)


def _operations(leaving: Leaving, tenant_id: int) -> list[str]:
    votes = votes_standing(leaving.person, tenant_id).values_list(F("attempt__operation_id"))
    touched = {operation_id for (operation_id,) in votes}
    if not leaving.keeps_items:
        touched |= set(items_in_hand(leaving.person, tenant_id).values_list("operation_id", flat=True))
    return sorted(touched)


def _withdraw_from(case: Case, attempt: Attempt, leaving: Leaving) -> Withdrawn:
    claimed, owned = (False, False) if leaving.keeps_items else _hand_back(case, attempt, leaving.person)
    falling = votes_standing(leaving.person, attempt.tenant_id).filter(attempt=attempt)
    votes = [] if leaving.still_approves(attempt) else list(falling)
    if claimed or owned or votes:
        case.record(
            EventKind.WITHDRAWN,
            attempt,
            person=leaving.person.get_username(),
            claim=claimed,
            owner=owned,
            votes=len(votes),
            cause=leaving.cause,
            why=leaving.why,
        )
    _void(case, attempt, votes, leaving.cause)
    return Withdrawn(int(claimed), int(owned), len(votes))


def _hand_back(case: Case, attempt: Attempt, person: User) -> tuple[bool, bool]:
    """Whether the attempt's open item was claimed by this person, and whether they owned it."""
    item = case.items.get(attempt.pk)
    if item is None:
        return False, False
    claimed, owned = item.claimed_by_id == person.pk, item.owner_id == person.pk
    if claimed:
        item.claimed_by, item.claim_until = None, None
    if owned:
        item.owner, item.owner_chosen = None, False
    item.save(update_fields=["claimed_by", "claim_until", "owner", "owner_chosen"])
    return claimed, owned


def _void(case: Case, attempt: Attempt, votes: list[Vote], cause: VoidCause) -> None:
    """Votes of the round under way fall alone; one inside an approval takes the approval with it."""
    of_the_round = Vote.objects.filter(pk__in=[vote.pk for vote in votes], approval=None)
    if of_the_round.update(voided_at=case.now, void_cause=cause) < len(votes):
        void_approval(case, attempt, cause)
