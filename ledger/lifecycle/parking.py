"""Facts about what the ledger does not know yet: kept, and joined to their attempt once, when it appears."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from django.db.models import F, Q

from ledger.authority import as_stored
from ledger.events import SYSTEM, agent_actor
from ledger.lifecycle.case import Case
from ledger.lifecycle.locking import lock_name, locked_operation
from ledger.lifecycle.outcomes import (
    apply_outcome,
    apply_provider_request,
    by_revoked,
    record_outcome,
    record_provider_request,
)
from ledger.lifecycle.standing import standing_of
from ledger.lifecycle.values import (
    MOST_MESSAGE,
    Kept,
    NoRoomToPark,
    OutcomeAnswer,
    OutcomeReport,
    Standing,
    Told,
    usage_in,
)
from ledger.models import ApiKey, Attempt, Operation, ParkedFact
from ledger.queries.parked import parked_now
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.vocabulary import FactKind
from ledger.transactions import database_clock, require_transaction

_SAID_OF_REPORT = frozenset(field.name for field in fields(OutcomeReport))


@dataclass(frozen=True)
class _Fact:
    """One report on its way in: what it says it is about, who says it, and its words."""

    key: ApiKey
    kind: FactKind
    told: Told
    said: Mapping[str, Any]

    @property
    def content_hash(self) -> str:
        """The same for the same words about the same thing, whoever of the tenant repeats them. The words of
        a revoked key settle nothing: from a live one they are another fact."""
        whole = {
            "kind": self.kind,
            "attempt": self.told.attempt_id,
            "operation": self.told.operation_key,
            "said": dict(self.said) | by_revoked(self.key),
        }
        return content_hash(canonical_bytes(whole))


def take_outcome(*, key: ApiKey, told: Told, report: OutcomeReport) -> OutcomeAnswer | Kept:
    """Record an outcome of an attempt this tenant knows, else keep it until it does.

    Raises `NoRoomToPark`. Another tenant's attempt is as unknown as one that never was.
    """
    if _knows(key, told):
        return record_outcome(key=key, attempt_id=told.attempt_id, report=report)
    kept = replace(report, message=report.message[:MOST_MESSAGE])
    return _keep(_Fact(key, FactKind.OUTCOME, told, kept.as_data))


def take_provider_request(
    *, key: ApiKey, told: Told, worker_id: str, provider_request_id: str
) -> Standing | Kept:
    """The same for the provider's own id of a request."""
    if _knows(key, told):
        return record_provider_request(
            key=key,
            attempt_id=told.attempt_id,
            worker_id=worker_id,
            provider_request_id=provider_request_id,
        )
    said = {"worker_id": worker_id, "provider_request_id": provider_request_id}
    kept = _keep(_Fact(key, FactKind.PROVIDER_REQUEST, told, said))
    return kept.standing if isinstance(kept, OutcomeAnswer) else kept


def lock_operation_key(tenant_id: int, operation_key: str) -> None:
    """Hold the place of an operation that may not exist until the transaction ends: a fact about it and its
    intent become a queue, so that neither misses the other."""
    lock_name("operation_key", tenant_id, operation_key)


def join_parked(case: Case) -> None:
    """Apply what was told of this operation before it was known, in the order in which it came."""
    known = Q(operation_key=case.operation.operation_key) | Q(attempt_told__in=[a.pk for a in case.attempts])
    waiting = ParkedFact.objects.filter(known, tenant_id=case.operation.tenant_id, joined_at=None)
    for fact in waiting.select_related("told_by").order_by("parked_at", "pk"):
        _join(case, fact, waited=True)


def join_late(*, operation_id: str) -> bool:
    """The same for an operation that came without an intent, as by a restore."""
    with locked_operation(operation_id, tenant_id=None, actor=SYSTEM) as case:
        join_parked(case)
    return True


def _knows(key: ApiKey, told: Told) -> bool:
    return (
        bool(told.attempt_id) and Attempt.objects.filter(tenant_id=key.tenant_id, pk=told.attempt_id).exists()
    )


def _keep(fact: _Fact) -> OutcomeAnswer | Kept:
    """Keep the fact; where its operation is known after all, join it at once. One whose sender named an
    attempt is answered as kept in either case."""
    require_transaction()
    lock_name("parked", fact.key.tenant_id)
    operation = _operation_of(fact)
    if operation is None:
        return Kept(replayed=not _store(fact, may_be_refused=True)[1])
    with locked_operation(operation.pk, tenant_id=fact.key.tenant_id, actor=SYSTEM) as case:
        row, new = _store(fact, may_be_refused=False)
        answer = _join(case, row, waited=not new)
    if fact.told.attempt_id:
        return Kept(replayed=not new)
    row.refresh_from_db()
    return answer or OutcomeAnswer(standing_of(_joined(row)), evidence_only=False, replayed=True)


def _operation_of(fact: _Fact) -> Operation | None:
    if not fact.told.operation_key:
        return None
    lock_operation_key(fact.key.tenant_id, fact.told.operation_key)
    found = Operation.objects.filter(tenant_id=fact.key.tenant_id, operation_key=fact.told.operation_key)
    return found.first()


def _store(fact: _Fact, *, may_be_refused: bool) -> tuple[ParkedFact, bool]:
    """The row of a fact, and whether it is new. Raises `NoRoomToPark` for a new one beyond the limit."""
    now, body = database_clock(), canonical_bytes(fact.said).decode()
    known = ParkedFact.objects.filter(tenant_id=fact.key.tenant_id, content_hash=fact.content_hash)
    if known.update(times_told=F("times_told") + 1, last_told_at=now):
        return known.select_related("told_by").get(), False
    size = len(body.encode()) + len(fact.told.operation_key.encode()) + len(fact.told.attempt_id)
    if may_be_refused and not parked_now(fact.key.tenant_id).has_room_for(size):
        raise NoRoomToPark
    row = ParkedFact.objects.create(
        tenant_id=fact.key.tenant_id,
        kind=fact.kind,
        attempt_told=fact.told.attempt_id,
        operation_key=fact.told.operation_key,
        body=body,
        content_hash=fact.content_hash,
        size=size,
        told_by=fact.key,
        parked_at=now,
        last_told_at=now,
    )
    return row, True


def _join(case: Case, fact: ParkedFact, *, waited: bool) -> OutcomeAnswer | None:
    """Apply one fact, once: whoever sets `joined_at` does it. None: it was applied before."""
    attempt = _meant_attempt(case, fact)
    claimed = ParkedFact.objects.filter(pk=fact.pk, joined_at=None)
    if not claimed.update(joined_at=case.now, attempt=attempt):
        return None
    told_by, usual = as_stored(fact.told_by), case.actor
    case.actor = agent_actor(told_by.agent)
    try:
        return _applied(case, attempt, fact, told_by, _wait_of(fact) if waited else None)
    finally:
        case.actor = usual


def _applied(
    case: Case, attempt: Attempt, fact: ParkedFact, told_by: ApiKey, parked: Mapping[str, Any] | None
) -> OutcomeAnswer:
    said = fact.said
    if fact.kind == FactKind.OUTCOME:
        told = {name: said[name] for name in said.keys() & _SAID_OF_REPORT}
        report = OutcomeReport(**{**told, "usage": usage_in(said)})
        beside = _may_be_about_another(case, fact, attempt)
        return apply_outcome(case, attempt, report, told_by, parked, may_be_about_another=beside)
    standing = apply_provider_request(
        case, attempt, told_by, said["worker_id"], said["provider_request_id"], parked
    )
    return OutcomeAnswer(standing, evidence_only=False, replayed=False)


def _wait_of(fact: ParkedFact) -> dict[str, Any]:
    """What the history says of a fact that had to wait."""
    about = {"attempt": fact.attempt_told, "operation_key": fact.operation_key}
    named = {name: value for name, value in about.items() if value}
    return {"fact": fact.pk, "since": fact.parked_at.isoformat(), "told": named}


def _meant_attempt(case: Case, fact: ParkedFact) -> Attempt:
    """Which attempt a fact is about: of those it may be about, whoever speaks for the operation."""
    return _speaking(case, _candidates(case, fact))


def _candidates(case: Case, fact: ParkedFact) -> list[Attempt]:
    """Those a fact may be about: the one it names, else the ones with its provider request id, else the ones
    of its content, else all."""
    said = fact.said
    request_id, args_hash = said.get("provider_request_id", ""), said.get("args_hash", "")
    named = [a for a in case.attempts if a.pk == fact.attempt_told]
    requested = [a for a in case.attempts if request_id and a.provider_request_id == request_id]
    same = [a for a in case.attempts if a.args_hash == args_hash]
    return named or requested or same or case.attempts


def _may_be_about_another(case: Case, fact: ParkedFact, attempt: Attempt) -> bool:
    """May it be about another send than this attempt's: one beside it, or one that a restore forgot?"""
    if fact.attempt_told:
        return fact.attempt_told != attempt.pk
    return any(other.was_sent for other in _candidates(case, fact) if other.pk != attempt.pk)


def _speaking(case: Case, among: list[Attempt]) -> Attempt:
    """The confirmed one, else the live one, else the newest."""
    for attempt in (case.confirmed, case.live()):
        if attempt is not None and attempt in among:
            return attempt
    return among[-1]


def _joined(fact: ParkedFact) -> Attempt:
    if fact.attempt is None:
        raise AssertionError(f"{fact.pk} was joined under its operation's lock, and has no attempt")
    return fact.attempt
