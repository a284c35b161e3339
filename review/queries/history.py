"""What was found, decided and recorded about an item: look-ups, chain, decisions, events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Count, Window

from ledger.authority import key_window_of
from ledger.lifecycle.case import Case
from ledger.models import Attempt, Decision, Event, LookUp, Operation, Provider, ReviewItem
from ledger.rules.canonical import canonical_bytes
from ledger.rules.masks import Veil
from ledger.rules.policy import Rule
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind, ReviewReason
from review.queries.page import AttemptView, DecisionView, EventView, Evidence, LookUpView, RecordView
from review.queries.values import ContentHash
from review.queries.words import ANSWER_WORDS, DECISION_LABELS, REASON_WORDS, plain

NEWEST_LOOKUPS = 5
NEWEST_EVENTS = 100
RECORD_CHARACTERS = 2_000


def chain_views(case: Case, this: Attempt, veil: Veil) -> tuple[AttemptView, ...]:
    """The attempts of an operation, oldest first, each with the id of its open item."""
    numbers = {attempt.pk: attempt.number for attempt in case.attempts}
    return tuple(_attempt_view(attempt, this, numbers, case.items, veil) for attempt in case.attempts)


def evidence_of(attempt: Attempt, rule: Rule, veil: Veil, now: datetime) -> Evidence:
    """Two queries."""
    provider = provider_of(attempt, rule)
    every = LookUp.objects.filter(attempt=attempt).annotate(total=Window(Count("pk")))
    lookups = list(every.order_by("-answered_at", "-pk")[:NEWEST_LOOKUPS])
    return Evidence(
        provider_request_id=veil.over_text(attempt.provider_request_id),
        result_ref=veil.over_text(attempt.result_ref),
        success_reported=attempt.success_reported,
        dispatched_at=attempt.dispatched_at,
        lease_until=attempt.lease_until,
        lookups=tuple(lookup_view(lookup, veil) for lookup in lookups),
        lookups_total=getattr(lookups[0], "total", 0) if lookups else 0,
        provider=rule.provider or "",
        refused_credential=provider.refused_credential if provider else "",
        credential_refused_since=provider.credential_refused_since if provider else None,
        checks=attempt.checks,
        max_checks=rule.max_checks,
        next_check_at=attempt.next_check_at,
        idempotency_key=attempt.idempotency_key,
        key_window=key_window_of(attempt, rule, now),
    )


def provider_of(attempt: Attempt, rule: Rule) -> Provider | None:
    if rule.provider is None:
        return None
    return Provider.objects.filter(tenant_id=attempt.tenant_id, name=rule.provider).first()


def decisions_of(operation: Operation) -> list[Decision]:
    """Every decision about an operation's attempts, newest first, with the votes and statements they are; one
    query."""
    related = ("by", "vote__approver", "vote__approval", "statement__look_up")
    decided = Decision.objects.filter(attempt__operation=operation)
    return list(decided.select_related(*related).order_by("-at", "-pk"))


def decision_view(decision: Decision) -> DecisionView:
    kind = DecisionKind(decision.kind)
    return DecisionView(
        kind, DECISION_LABELS[kind], decision.by.get_username(), decision.at, decision.why, decision.data
    )


def events_of(
    operation: Operation, attempts: list[Attempt], veil: Veil, *, before: int | None = None
) -> tuple[EventView, ...]:
    """The newest 100, of all or before this number, newest first; one query."""
    numbers = {attempt.pk: attempt.number for attempt in attempts}
    events = operation.events.all() if before is None else operation.events.filter(sequence__lt=before)
    newest = events.order_by("-sequence")[:NEWEST_EVENTS]
    return tuple(event_view(event, numbers, veil) for event in newest)


def _attempt_view(
    attempt: Attempt, this: Attempt, numbers: Mapping[str, int], items: Mapping[str, ReviewItem], veil: Veil
) -> AttemptView:
    return AttemptView(
        attempt_id=attempt.pk,
        number=attempt.number,
        state=State(attempt.state),
        reason=attempt.reason or attempt.failure,
        reason_words=_reason_words(attempt),
        hash=ContentHash(attempt.args_hash),
        same_hash=attempt.args_hash == this.args_hash,
        held=attempt.held_at is not None,
        sent=attempt.was_sent,
        descends_from=numbers.get(attempt.descends_from_id or ""),
        created_at=attempt.created_at,
        dispatched_at=attempt.dispatched_at,
        result_ref=veil.over_text(attempt.result_ref),
        item_id=items[attempt.pk].pk if attempt.pk in items else None,
        is_this=attempt.pk == this.pk,
    )


def _reason_words(attempt: Attempt) -> str:
    return REASON_WORDS[ReviewReason(attempt.reason)] if attempt.reason else plain(attempt.failure)


def lookup_view(lookup: LookUp, veil: Veil) -> LookUpView:
    return LookUpView(
        id=lookup.pk,
        at=lookup.answered_at,
        answer=lookup.answer,
        words=ANSWER_WORDS.get(lookup.answer, plain(lookup.answer)),
        detail=veil.over_text(lookup.detail),
        decided_row=lookup.row,
        records=tuple(_record_view(record, veil) for record in lookup.records),
    )


def _record_view(record: dict[str, Any], veil: Veil) -> RecordView:
    data = canonical_bytes(veil.over(record.get("data") or {})).decode()
    return RecordView(
        reference=veil.over_text(str(record.get("reference") or "")),
        content=str(record.get("content", "")),
        state=str(record.get("state", "")),
        data=_cut(data),
    )


def _cut(text: str) -> str:
    if len(text) <= RECORD_CHARACTERS:
        return text
    return f"{text[:RECORD_CHARACTERS]}… [{len(text)} characters]"


def event_view(event: Event, numbers: dict[str, int], veil: Veil) -> EventView:
    return EventView(
        sequence=event.sequence,
        kind=event.kind,
        actor_kind=event.actor_kind,
        actor=event.actor,
        at=event.at,
        attempt_number=numbers.get(event.attempt_id or ""),
        data=veil.over_text(event.body),
        hash=ContentHash(event.hash),
    )
