"""Facts that never matched anything the ledger knows, as the people of their tenants see them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet

from ledger.models import ParkedFact, ParkedNote, User
from ledger.policies import veil_over
from ledger.queries.parked import OPEN, parked_now
from ledger.rules.vocabulary import FactKind
from ledger.transactions import database_clock
from review.door import enter_row
from review.queries.cursor import page_at, place_of
from review.queries.marked import Segment, marked_text
from review.queries.parked_candidates import CandidateView, candidates_of
from review.queries.tenants import held_by, tenant_view, tenants_of
from review.queries.values import TenantView
from review.rights import Rights

PAGE_SIZE = 50
OLDEST_FIRST = ("parked_at", "pk")

_SAID_LABELS = {
    "result_ref": "Result reference",
    "provider_request_id": "Provider’s request id",
    "no_effect": "No effect",
    "retryable": "May be sent again",
    "error_class": "Error",
    "message": "Message",
    "usage": "Usage",
    "args_hash": "Hash of what was sent",
    "occurred_at": "Happened at",
    "worker_id": "Worker",
}
_HEADLINES = {
    "succeeded": "It succeeded",
    "failed": "It failed",
    "unknown": "Its outcome is not known",
    FactKind.PROVIDER_REQUEST: "The provider has it",
}


@dataclass(frozen=True)
class SaidView:
    """One thing a fact says; the words of an agent."""

    label: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class ParkedRow:
    """One fact: what was told about which name, by whom, since when, how often."""

    fact_id: str
    tenant: TenantView
    headline: str
    attempt_told: str
    operation_key: str
    references: tuple[str, ...]
    agent: str
    parked_at: datetime
    last_told_at: datetime
    times_told: int
    notes: int


@dataclass(frozen=True)
class Filling:
    """A tenant in which there will soon be no room for further facts, or is none now."""

    tenant: TenantView
    percent: int


@dataclass(frozen=True)
class ParkedPage:
    """One page of facts, the oldest first."""

    dismissed: bool
    rows: tuple[ParkedRow, ...]
    tenants: tuple[TenantView, ...]
    waiting: int
    filling: tuple[Filling, ...]
    next_cursor: str | None
    as_of: datetime


@dataclass(frozen=True)
class NoteView:
    """What a person said about a fact."""

    by: str
    at: datetime
    why: str
    dismisses: bool


@dataclass(frozen=True)
class ParkedFactPage:
    """One fact with all it says, what people said about it, and what it may belong to."""

    row: ParkedRow
    said: tuple[SaidView, ...]
    notes: tuple[NoteView, ...]
    candidates: tuple[CandidateView, ...]
    joined: CandidateView | None
    joined_at: datetime | None
    dismissed: bool
    rights: Rights
    as_of: datetime


def parked_page(user: User, *, dismissed: bool = False, cursor: str = "") -> ParkedPage:
    """One page of 50. Raises `BadFilter` for a cursor that is not of this list."""
    tenants = tenants_of(user)
    ids = [tenant.id for tenant in tenants]
    now = database_clock()
    place = place_of("parked-dismissed" if dismissed else "parked", cursor, now)
    listed, next_cursor = page_at(place, _shown(ids, dismissed=dismissed), OLDEST_FIRST, PAGE_SIZE)
    return ParkedPage(
        dismissed=dismissed,
        rows=tuple(_row(fact) for fact in listed),
        tenants=tenants,
        waiting=ParkedFact.objects.filter(OPEN, tenant_id__in=ids).count(),
        filling=tuple(_filling(tenants)),
        next_cursor=next_cursor,
        as_of=now,
    )


def parked_count(user: User) -> int:
    """How many facts wait in the tenants of this person; one query."""
    seen = held_by(user, "view_work").values("content_object_id")
    return ParkedFact.objects.filter(OPEN, tenant_id__in=seen).count()


def enter_fact(user: User, fact_id: str) -> tuple[ParkedFact, Rights]:
    """The fact, if this person may see it. Raises `NotVisible`."""
    fact = _with_notes(ParkedFact.objects.filter(pk=fact_id)).first()
    return enter_row(user, fact, fact_id)


def parked_fact_page(user: User, fact_id: str) -> ParkedFactPage:
    """Everything about one fact. Raises `NotVisible`."""
    fact, rights = enter_fact(user, fact_id)
    notes = fact.notes.select_related("by").order_by("at", "pk")
    return ParkedFactPage(
        row=_row(fact),
        said=tuple(_said(fact)),
        notes=tuple(_note(note) for note in notes),
        candidates=candidates_of(fact) if fact.joined_at is None else (),
        joined=CandidateView.of(fact.attempt) if fact.attempt else None,
        joined_at=fact.joined_at,
        dismissed=fact.dismissed_at is not None,
        rights=rights,
        as_of=database_clock(),
    )


def _shown(tenant_ids: list[int], *, dismissed: bool) -> QuerySet[ParkedFact]:
    shown = Q(joined_at=None, dismissed_at__isnull=False) if dismissed else OPEN
    return _with_notes(ParkedFact.objects.filter(shown, tenant_id__in=tenant_ids))


def _with_notes(facts: QuerySet[ParkedFact]) -> QuerySet[ParkedFact]:
    related = ("tenant", "told_by__agent", "attempt__operation", "attempt__policy")
    return facts.select_related(*related).annotate(notes_count=Count("notes"))


def _filling(tenants: tuple[TenantView, ...]) -> list[Filling]:
    found = [(tenant, parked_now(tenant.id)) for tenant in tenants]
    return [
        Filling(tenant, min(100, int(parked.fullness * 100)))
        for tenant, parked in found
        if parked.is_nearly_full
    ]


def _row(fact: ParkedFact) -> ParkedRow:
    said = fact.said
    return ParkedRow(
        fact_id=fact.pk,
        tenant=tenant_view(fact.tenant),
        headline=_HEADLINES[said.get("outcome", fact.kind)],
        attempt_told=fact.attempt_told,
        operation_key=fact.operation_key,
        references=tuple(said[name] for name in ("result_ref", "provider_request_id") if name in said),
        agent=fact.told_by.agent.name,
        parked_at=fact.parked_at,
        last_told_at=fact.last_told_at,
        times_told=fact.times_told,
        notes=vars(fact)["notes_count"],
    )


def _said(fact: ParkedFact) -> list[SaidView]:
    """Of one that found its attempt without what that hides; until then nobody knows what to hide."""
    said = veil_over(fact.attempt).over(fact.said) if fact.attempt else fact.said
    return [
        SaidView(label, marked_text(_text(said[name])))
        for name, label in _SAID_LABELS.items()
        if name in said
    ]


def _text(value: Any) -> str:
    if value is True:
        return "yes"
    if isinstance(value, dict):
        return ", ".join(f"{amount} {unit}" for unit, amount in sorted(value.items()))
    return str(value)


def _note(note: ParkedNote) -> NoteView:
    return NoteView(note.by.get_username(), note.at, note.why, note.dismisses)
