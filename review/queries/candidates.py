"""Which operations an attempt may belong to: hints for a person who relinks, never a match by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet

from ledger.models import Attempt, User
from ledger.policies import rule_as_shown
from ledger.queries.arguments import sentence_of, stored_args
from ledger.rules.masks import hides
from ledger.rules.pointers import pointer
from ledger.rules.states import State
from review.door import enter
from review.queries.marked import Segment, marked_text

MOST = 8
AROUND = timedelta(hours=1)
AMOUNT = "/amount"


@dataclass(frozen=True)
class OperationCandidate:
    """One operation, the attempt of it that speaks for it, and in `why` what does."""

    operation_key: str
    attempt_number: int
    state: State
    sent: bool
    sentence: tuple[Segment, ...]
    why: tuple[str, ...]


def relink_candidates(user: User, item_id: str) -> tuple[OperationCandidate, ...]:
    """The likeliest first: the same arguments, reference, amount, or time. Raises `NotVisible`."""
    attempt = enter(user, item_id).item.attempt
    found: dict[str, tuple[Attempt, list[str]]] = {}
    for why, attempts in _hints(attempt):
        for other in attempts.select_related("operation", "policy")[:MOST]:
            found.setdefault(other.operation_id, (other, []))[1].append(why)
    likeliest = sorted(found.values(), key=lambda one: -len(set(one[1])))[:MOST]
    return tuple(_candidate(other, why) for other, why in likeliest)


def _hints(attempt: Attempt) -> Iterator[tuple[str, QuerySet[Attempt]]]:
    others = Attempt.objects.filter(tenant_id=attempt.tenant_id, tool=attempt.tool).exclude(
        operation_id=attempt.operation_id
    )
    newest_first = others.order_by("-created_at", "pk")
    yield "the same arguments", newest_first.filter(args_hash=attempt.args_hash)
    references = _references(attempt)
    if references:
        named = Q(provider_request_id__in=references) | Q(result_ref__in=references)
        yield "the same reference", newest_first.filter(named)
    around = newest_first.filter(created_at__range=(attempt.created_at - AROUND, attempt.created_at + AROUND))
    amount = _amount(attempt)
    if amount:
        yield "the same amount", newest_first.filter(args__contains=amount)
    yield "around the same time", around.filter(agent_id=attempt.agent_id)


def _references(attempt: Attempt) -> set[str]:
    """Its own, and those of the records its look-ups found."""
    records = (one for lookup in attempt.lookups.all() for one in lookup.records)
    found = {str(record.get("reference") or "") for record in records}
    return ({attempt.result_ref, attempt.provider_request_id} | found) - {""}


def _amount(attempt: Attempt) -> dict[str, Any]:
    """Where its amount stands, as a document that contains nothing else; empty without one to be seen."""
    rule, args = rule_as_shown(attempt), stored_args(attempt) or {}
    path = rule.cost.amount if rule.cost else AMOUNT
    found = pointer(args, path)
    if found is None or hides(rule.mask, path):
        return {}
    document: Any = found
    for name in reversed(path.split("/")[1:]):
        document = {name.replace("~1", "/").replace("~0", "~"): document}
    return dict(document)


def _candidate(attempt: Attempt, why: list[str]) -> OperationCandidate:
    return OperationCandidate(
        operation_key=attempt.operation.operation_key,
        attempt_number=attempt.number,
        state=State(attempt.state),
        sent=attempt.was_sent,
        sentence=marked_text(sentence_of(attempt, rule_as_shown(attempt))),
        why=tuple(dict.fromkeys(why)),
    )
