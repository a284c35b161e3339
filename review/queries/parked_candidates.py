"""What a parked fact may belong to: hints for a person, never a match the ledger makes by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from django.db.models import Q, QuerySet

from ledger.models import Attempt, ParkedFact, ReviewItem
from ledger.policies import rule_as_shown
from ledger.queries.arguments import sentence_of
from ledger.rules.states import State
from review.queries.marked import Segment, marked_text

MOST_CANDIDATES = 5
AROUND = timedelta(hours=1)


@dataclass(frozen=True)
class CandidateView:
    """An attempt, and in `why` what speaks for it."""

    attempt_id: str
    attempt_number: int
    operation_key: str
    state: State
    sentence: tuple[Segment, ...]
    item_id: str | None
    why: tuple[str, ...] = ()

    @classmethod
    def of(cls, attempt: Attempt) -> Self:
        item = ReviewItem.objects.filter(attempt=attempt).order_by("-opened_at").first()
        return cls(
            attempt_id=attempt.pk,
            attempt_number=attempt.number,
            operation_key=attempt.operation.operation_key,
            state=State(attempt.state),
            sentence=marked_text(sentence_of(attempt, rule_as_shown(attempt))),
            item_id=item.pk if item else None,
        )


def candidates_of(fact: ParkedFact) -> tuple[CandidateView, ...]:
    """The likeliest first: the same reference, the same content, the same agent around that time."""
    found: dict[str, tuple[Attempt, list[str]]] = {}
    for why, attempts in _hints(fact):
        for attempt in attempts.select_related("operation", "policy")[:MOST_CANDIDATES]:
            found.setdefault(attempt.pk, (attempt, []))[1].append(why)
    likeliest = sorted(found.values(), key=lambda candidate: -len(candidate[1]))[:MOST_CANDIDATES]
    return tuple(replace(CandidateView.of(attempt), why=tuple(why)) for attempt, why in likeliest)


def _hints(fact: ParkedFact) -> list[tuple[str, QuerySet[Attempt]]]:
    said = fact.said
    attempts = Attempt.objects.filter(tenant_id=fact.tenant_id).order_by("-created_at", "pk")
    asked = attempts.filter(review_items__closed_at=None, review_items__isnull=False)
    references = [said[name] for name in ("provider_request_id", "result_ref") if name in said]
    around = asked.filter(
        agent_id=fact.told_by.agent_id,
        dispatched_at__range=(fact.parked_at - AROUND, fact.parked_at + AROUND),
    )
    hints = [("sent by the same agent around that time", around)]
    if "args_hash" in said:
        hints.insert(0, ("the same arguments", attempts.filter(args_hash=said["args_hash"])))
    if references:
        by_reference = attempts.filter(provider_request_id__in=references)
        open_ones = asked.filter(Q(result_ref__in=references))
        hints[:0] = [("the same request id", by_reference), ("the same reference", open_ones)]
    return hints
