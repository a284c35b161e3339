"""The buttons of an item: what the ledger's facts offer, narrowed by rights, claims and separate duties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ledger.lifecycle import Offer
from ledger.models import User
from ledger.rules.authority import Reason
from ledger.rules.vocabulary import DecisionKind, Effect
from review.door import Entry, right_needed
from review.queries.page import ActionView, Votes
from review.queries.values import Claim
from review.queries.words import DECISION_LABELS, listed

_K = DecisionKind


@dataclass(frozen=True)
class Presser:
    """Who would press, and what stands between them and the buttons. `barred`: by separate duties.
    `approval_answers`: what stands against a send that an approval would settle."""

    user: User
    entry: Entry
    claim: Claim | None
    votes: Votes
    administrators: tuple[str, ...]
    barred: str | None
    has_voted: bool
    tool: str
    effect: Effect
    approval_answers: tuple[Reason, ...] = ()


def actions_of(presser: Presser, offers: Iterable[Offer]) -> tuple[ActionView, ...]:
    """Decisions first, in the ledger's order, then ownership."""
    decisions = tuple(_decision(presser, offer) for offer in offers)
    return (*decisions, *_ownership(presser))


def _decision(presser: Presser, offer: Offer) -> ActionView:
    kind = DecisionKind(offer.kind)
    why_not = [*_lacking(presser, kind), *_claimed_by_other(presser), *offer.refused]
    answers = presser.approval_answers if kind is _K.APPROVE else ()
    return replace(_action(kind, _consequence(presser, kind, offer), why_not), answers=answers)


def _consequence(presser: Presser, kind: DecisionKind, offer: Offer) -> str:
    if kind is _K.APPROVE and presser.votes.waiting is not None:
        return _approve_again(presser.votes, presser.votes.waiting.by, offer)
    return offer.consequence


def _approve_again(votes: Votes, approved_by: tuple[str, ...], offer: Offer) -> str:
    names = listed(approved_by)
    if votes.lapsed:
        codes = ", ".join(votes.lapsed)
        lapsed = f"The approval of {names} no longer covers this send ({codes}): approve again."
        return f"{lapsed} {offer.consequence}"
    again = f"Approved already by {names}; approving again replaces that approval"
    if votes.needed == 1:
        return f"{again}."
    return f"{again} once {votes.needed} people have; {len(votes.open)} so far."


def _lacking(presser: Presser, kind: DecisionKind) -> list[str]:
    if not presser.entry.rights.decide:
        return [_missing(presser, "decide_work")]
    return _not_an_approver(presser) if kind is _K.APPROVE else []


def _not_an_approver(presser: Presser) -> list[str]:
    found = []
    if not presser.entry.rights.may_approve(presser.tool, presser.effect):
        found.append(_missing(presser, "approve_sends"))
    if presser.barred is not None:
        found.append(f"{presser.barred} Somebody else has to approve it.")
    if presser.has_voted:
        found.append("Your yes is counted already.")
    return found


def _claimed_by_other(presser: Presser) -> list[str]:
    claim = presser.claim
    if claim is None or claim.is_mine:
        return []
    return [f"{claim.by} holds this until {claim.until:%H:%M} UTC: take it over first."]


def _ownership(presser: Presser) -> tuple[ActionView, ...]:
    claim, rights = presser.claim, presser.entry.rights
    mine, others = claim is not None and claim.is_mine, claim is not None and not claim.is_mine
    may_own = [] if rights.decide else [_missing(presser, "decide_work")]
    may_hold = [*may_own, *_claimed_by_other(presser)]
    either = rights.decide or rights.administer
    may_assign = [] if either else [_missing(presser, "decide_work", "administer")]
    holder = claim.by if claim else ""
    return (
        _owning(presser, _K.CLAIM, "Shows others that you are on it for 15 minutes.", may_hold),
        _owning(presser, _K.RELEASE, "Ends your claim.",
                [*may_own, *([] if mine else ["You have no claim on it."])]),
        _owning(presser, _K.TAKE_OVER, f"Ends the claim of {holder}, who is named." if others else
                "Ends somebody else's claim.", [*may_own, *([] if others else ["Nobody else holds it."])]),
        _owning(presser, _K.HAND_OVER, "Makes a colleague its owner and claims it for them for 15 minutes.",
                [*may_hold, *([] if mine or _is_owner(presser) else ["You neither own nor hold it."])]),
        _owning(presser, _K.ASSIGN, _assign_consequence(presser), may_assign),
        *_waiting(presser, may_hold, may_own),
        _action(_K.NOTE, "Adds a note to the history; decides nothing.", may_assign),
    )  # fmt: skip


def _waiting(presser: Presser, may_hold: list[str], may_own: list[str]) -> tuple[ActionView, ...]:
    item, now = presser.entry.item, presser.entry.now
    snoozed = item.snoozed_until is not None and now < item.snoozed_until
    away = f"Takes it off the active lists for a while; it stays due {item.due_at:%d %b, %H:%M} UTC."
    waits = "Shows everybody whom or what this waits on; decides nothing."
    awake = [] if snoozed else ["It is not snoozed."]
    return (
        _owning(presser, _K.SNOOZE, away, may_hold),
        _owning(presser, _K.WAKE, "Puts it back on the active lists now.", [*may_own, *awake]),
        _owning(presser, _K.WAIT_ON, waits, may_hold),
    )


def _is_owner(presser: Presser) -> bool:
    return presser.entry.item.owner_id == presser.user.pk


def _assign_consequence(presser: Presser) -> str:
    if presser.entry.rights.administer:
        return "Makes a person or a group of this tenant its owner."
    return "Makes you or one of your groups its owner."


def _owning(presser: Presser, kind: DecisionKind, consequence: str, why_not: list[str]) -> ActionView:
    closed = ["This question is closed."] if presser.entry.item.closed_at else []
    return _action(kind, consequence, [*closed, *why_not])


def _action(kind: DecisionKind, consequence: str, why_not: list[str]) -> ActionView:
    return ActionView(kind, DECISION_LABELS[kind], not why_not, consequence, tuple(why_not))


def _missing(presser: Presser, *codenames: str) -> str:
    """Which right is asked (one of them is enough), and who can give it."""
    needed = right_needed(presser.entry.tenant, *codenames)
    return f"{needed} {granting_words(presser.administrators, presser.user.get_username())}"


def granting_words(administrators: tuple[str, ...], asker: str) -> str:
    """Who can give a missing right to this person."""
    if not administrators:
        return "Nobody administers this tenant yet."
    others = [name for name in administrators if name != asker]
    if not others:
        return (
            "Only you administer this tenant, and nobody gives rights to themselves: "
            "add another administrator."
        )
    return f"It is granted by {listed(others)}."
