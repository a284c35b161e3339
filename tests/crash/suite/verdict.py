"""The verdict on one schedule, in two parts: nothing unsafe happened, and nothing is left lying about."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ledger.models import (
    ApprovalUse,
    Attempt,
    Decision,
    Event,
    Operation,
    ReviewItem,
    Tenant,
)
from ledger.queries.invariants import INVARIANTS, OF_THE_SYSTEM, tenancy
from ledger.queries.invariants.scope import Scope
from ledger.queries.snapshot import one_snapshot
from ledger.rules.states import OPEN_QUESTION, WAITS_FOR_AGENT, Outcome, State
from ledger.rules.vocabulary import EventKind
from ledger.transactions import database_clock
from tests.crash.suite import delivered
from tests.crash.suite.history import what_is_wrong

NO_EFFECT = "failed"
CHECKS = tuple(check for check in INVARIANTS if check not in (*OF_THE_SYSTEM, *tenancy.CHECKS))


@dataclass(frozen=True)
class Effect:
    """One line of the provider's journal."""

    correlation_id: str
    id: str
    status: str
    key: str
    sent_by: str
    at: float


@dataclass(frozen=True)
class Fault:
    """Why a schedule is red. `kind`: effects, lost, stuck, twice, undelivered, fsck or history."""

    kind: str
    detail: str


@dataclass(frozen=True)
class Case:
    """What the judge is given: who was resumed beyond a lease and when, which schedules have an excuse, and
    where the consumers' books are."""

    tenant_id: int
    correlation_ids: tuple[str, ...]
    effects: tuple[Effect, ...]
    resumed: dict[str, float]
    journals: tuple[Path, ...]
    may_wait: bool
    books: Path
    places: tuple[str, ...]


def effects_in(journal: Path, marks: Sequence[str]) -> list[Effect]:
    """The effects of these operations that the provider counted."""
    wanted = set(marks)
    with journal.open(encoding="utf-8") as lines:
        effects = [Effect(**json.loads(line)) for line in lines if line.endswith("\n")]
    return [effect for effect in effects if effect.correlation_id in wanted and effect.status != NO_EFFECT]


def judge(case: Case) -> dict[str, Any]:
    """The verdict, as data: what is wrong, and what was counted."""
    tenant = Tenant.objects.get(pk=case.tenant_id)
    zombies: Counter[str] = Counter()
    books = delivered.books_of(case.books, tenant.pk, case.places)
    wrong = [
        *_too_many_effects(case, zombies),
        *_effects_of_deliveries(case),
        *_lost(case),
        *_stuck(case),
        *_broken(case.tenant_id),
        *(Fault("history", words) for words in what_is_wrong(case.tenant_id)),
        *(Fault(*found) for found in (delivered.what_is_wrong(tenant.pk, books) if books else ())),
    ]
    operations = Operation.objects.filter(tenant=tenant)
    return {
        "faults": [asdict(fault) for fault in wrong],
        "operations": operations.count(),
        "outcomes": Counter(operations.values_list("outcome", flat=True)),
        "attempts": Attempt.objects.filter(tenant=tenant).count(),
        "effects": len(case.effects),
        "approved_sends": ApprovalUse.objects.filter(tenant=tenant).count(),
        "zombies": zombies,
        **delivered.counts(tenant.pk, books),
    }


def _broken(tenant_id: int) -> Iterator[Fault]:
    """What fsck finds in this tenant. What concerns the whole system is asked now and then (`clerk`)."""
    scope = Scope(tenant_id)
    with one_snapshot():
        for check in CHECKS:
            for broken in check(scope):
                yield Fault("fsck", f"{check.__name__} {broken.subject_id}: {broken.detail}")


# --- safety: effects ---------------------------------------------------------------------------------------


def _too_many_effects(case: Case, zombies: Counter[str]) -> Iterator[Fault]:
    """More effects than one, beside those that a person approved, and not by a process that had lost its
    lease: those are counted in `zombies`."""
    for operation in Operation.objects.filter(tenant_id=case.tenant_id):
        number = int(operation.operation_key.partition(":")[2])
        seen = [effect for effect in case.effects if effect.correlation_id == case.correlation_ids[number]]
        excess = len(seen) - _allowed(operation)
        by_zombies = sum(effect.at >= case.resumed.get(effect.sent_by, float("inf")) for effect in seen)
        if 0 < excess <= by_zombies:
            zombies["agent" if any(e.sent_by.startswith("a") for e in seen) else "ledger"] += excess
        elif excess > 0:
            yield Fault("effects", f"{operation.operation_key} had {excess} too many: {_words(seen)}")


def _effects_of_deliveries(case: Case) -> Iterator[Fault]:
    """Whoever delivers results has none."""
    for effect in case.effects:
        if effect.sent_by.startswith("d"):
            yield Fault("effects", f"a deliverer had one: {_words([effect])}")


def _allowed(operation: Operation) -> int:
    """One automatic send, where there was one, and each send with approval."""
    sent = operation.attempts.filter(dispatched_at__isnull=False)
    approved = sent.filter(approval_use__isnull=False).count()
    return approved + int(sent.count() > approved)


def _words(effects: Sequence[Effect]) -> str:
    return "; ".join(f"{e.id} by {e.sent_by} key …{e.key[-6:]} at {e.at:.3f}" for e in effects)


# --- safety: acknowledgements ------------------------------------------------------------------------------


def _lost(case: Case) -> Iterator[Fault]:
    """Acknowledgements that are no longer true."""
    for journal in case.journals:
        for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else ():
            said = json.loads(line)
            if not _CHECKS[said["said"]](said):
                yield Fault("lost", line)


def _is_intent_kept(said: dict[str, Any]) -> bool:
    return Attempt.objects.filter(pk=said["attempt"], args_hash=said["args_hash"]).exists()


def _is_leave_kept(said: dict[str, Any]) -> bool:
    dispatched = Event.objects.filter(attempt_id=said["attempt"], kind=EventKind.DISPATCHED)
    return (
        dispatched.exists()
        and Attempt.objects.filter(pk=said["attempt"], dispatched_at__isnull=False).exists()
    )


def _is_reference_kept(said: dict[str, Any]) -> bool:
    named = Event.objects.filter(attempt_id=said["attempt"], kind=EventKind.PROVIDER_REQUEST)
    return named.exists()


def _is_outcome_kept(said: dict[str, Any]) -> bool:
    reported = Event.objects.filter(attempt_id=said["attempt"], kind=EventKind.OUTCOME_REPORTED)
    if said["state"] != State.OUTCOME_CONFIRMED:
        return reported.exists()
    return reported.exists() and Attempt.objects.filter(pk=said["attempt"], state=said["state"]).exists()


def _is_cancelled(said: dict[str, Any]) -> bool:
    return Operation.objects.filter(pk=said["operation"], cancelled_at__isnull=False).exists()


def _is_decided(said: dict[str, Any]) -> bool:
    return Decision.objects.filter(pk=said["decision"]).exists()


_CHECKS: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "intent": _is_intent_kept,
    "leave": _is_leave_kept,
    "named": _is_reference_kept,
    "outcome": _is_outcome_kept,
    "cancelled": _is_cancelled,
    "decided": _is_decided,
}


# --- liveness ----------------------------------------------------------------------------------------------


def _stuck(case: Case) -> Iterator[Fault]:
    """Operations that have not ended and that nobody owns; leases nobody will end."""
    now = database_clock()
    for operation in Operation.objects.filter(tenant_id=case.tenant_id, outcome=Outcome.OPEN):
        attempts = list(operation.attempts.order_by("number"))
        live = [a for a in attempts if not a.is_final]
        if not live or not all(_is_owned(a, may_wait=case.may_wait) for a in live):
            states = ", ".join(f"#{a.number} {a.state} {a.reason}" for a in attempts)
            yield Fault("stuck", f"{operation.operation_key}: {states}")
    for attempt in Attempt.objects.filter(tenant_id=case.tenant_id):
        if attempt.lookup_lease_until is not None and attempt.lookup_lease_until > now:
            yield Fault("stuck", f"{attempt} still holds a look-up lease")


def _is_owned(attempt: Attempt, *, may_wait: bool) -> bool:
    """By an open item with an owner and a due time, or by its agent, which may not send (for a reason that
    the plan knows) and has until `start_by`."""
    if attempt.state in OPEN_QUESTION:
        asked = ReviewItem.objects.filter(attempt=attempt, closed_at=None).first()
        is_asked = asked is not None and bool(asked.owner_group_id) and asked.due_at is not None
        return is_asked and attempt.state == State.MANUAL_REVIEW
    return may_wait and attempt.state in WAITS_FOR_AGENT and attempt.start_by is not None
