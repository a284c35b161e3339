"""Apply what a report, a look-up or a person has settled: the moves that evidence leads to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ledger.lifecycle import items
from ledger.lifecycle.case import Case
from ledger.lifecycle.moves import move, void_all_approvals
from ledger.lifecycle.runs import reported_actual
from ledger.lifecycle.statements import contradict_statements
from ledger.models import Attempt, ReviewItem
from ledger.rules.budgets import How
from ledger.rules.states import FINAL, State
from ledger.rules.vocabulary import ConfirmedBy, EventKind, FailedBy, ReviewReason


def confirm(
    case: Case,
    attempt: Attempt,
    *,
    by: ConfirmedBy,
    reference: str,
    said: Mapping[str, Any] | None = None,
) -> None:
    """It happened, with evidence. Open conflicts that name the same reference were this very effect."""
    move(
        case,
        attempt,
        State.OUTCOME_CONFIRMED,
        confirmed_by=by,
        result_ref=reference or attempt.result_ref,
        positive_evidence=True,
        actual={} if case.unheard else reported_actual(attempt),
        said={"confirmed_by": by, "reference": reference, **(said or {})},
    )
    void_all_approvals(case, "confirmed")
    for other in case.attempts:
        if other.pk != attempt.pk and _same_effect_in_conflict(case, other, attempt):
            close_conflict(case, other, how="same_effect")


def fail(
    case: Case, attempt: Attempt, *, by: FailedBy, failure: str, said: Mapping[str, Any] | None = None
) -> None:
    """It did not happen and is closed for ever."""
    data = {"failed_by": by, "failure": failure, **(said or {})}
    how = How.PERSON if by is FailedBy.OPERATOR else How.FINDING
    move(case, attempt, State.FAILED, how=how, failed_by=by, failure=failure, said=data)


def to_review(
    case: Case,
    attempt: Attempt,
    reason: ReviewReason,
    *,
    said: Mapping[str, Any] | None = None,
    **facts: Any,
) -> None:
    """A person must decide. DISPATCHED passes through UNKNOWN; an attempt that is there changes its
    reason."""
    if attempt.state == State.DISPATCHED:
        move(case, attempt, State.UNKNOWN, reason=ReviewReason.UNKNOWN)
    if attempt.state == State.MANUAL_REVIEW:
        case.change(attempt, reason=reason, **facts)
        items.open_or_change(case, attempt, reason)
        case.moved = True
    else:
        move(case, attempt, State.MANUAL_REVIEW, reason=reason, said=said, **facts)


def open_conflict(case: Case, attempt: Attempt, *, evidence: Mapping[str, Any]) -> None:
    """What is known of this attempt contradicts itself. A final state stays until a person decides."""
    if attempt.state in FINAL:
        possibly_twice = case.confirmed is not None and case.confirmed.pk != attempt.pk
        item = items.open_or_change(case, attempt, ReviewReason.CONFLICTING_EVIDENCE)
        data = {**evidence, "item": item.pk, "possibly_done_twice": possibly_twice}
        contradict_statements(case, attempt, case.record(EventKind.CONFLICT, attempt, **data))
    else:
        case.record(EventKind.CONFLICT, attempt, **evidence)
        to_review(case, attempt, ReviewReason.CONFLICTING_EVIDENCE)


def close_conflict(case: Case, attempt: Attempt, *, how: str) -> None:
    """A conflict is over: of a final attempt its item closes; any other is SUPERSEDED, its references
    kept."""
    if attempt.state in FINAL:
        items.close(case, attempt, how=how)
    else:
        supersede(case, attempt, how=how)


def supersede(case: Case, attempt: Attempt, *, how: str, said: Mapping[str, Any] | None = None) -> None:
    """What became of it is answered by the confirmed attempt. DISPATCHED passes through UNKNOWN."""
    if attempt.state == State.DISPATCHED:
        move(case, attempt, State.UNKNOWN, reason=ReviewReason.UNKNOWN)
    move(case, attempt, State.SUPERSEDED, said={"closed_as": how, **(said or {})})


def is_same_effect(attempt: Attempt, references: set[str]) -> bool:
    """Does one of these references name what the attempt is already tied to?"""
    return bool({attempt.result_ref, attempt.provider_request_id} & (references - {""}))


def _same_effect_in_conflict(case: Case, other: Attempt, confirmed: Attempt) -> bool:
    """Is everything the open conflict of `other` rests on the effect that is now confirmed?"""
    item = case.items.get(other.pk)
    if item is None or item.reason != ReviewReason.CONFLICTING_EVIDENCE:
        return False
    effects = list(_effects_named(other, item))
    return bool(effects) and all(is_same_effect(confirmed, named) for named in effects)


def _effects_named(attempt: Attempt, item: ReviewItem) -> Iterator[set[str]]:
    """The references of each effect a conflict speaks of: the attempt's own, each report's, each record's;
    none of one that nobody named."""
    own = {attempt.result_ref, attempt.provider_request_id} - {""}
    if own:
        yield own
    for event in attempt.events.filter(kind=EventKind.CONFLICT, at__gte=item.opened_at):
        for said in event.data.get("records") or [event.data]:
            named = (said.get(name) for name in ("reference", "result_ref", "provider_request_id"))
            yield {name for name in named if name}
