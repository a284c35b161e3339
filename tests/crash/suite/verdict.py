"""The verdict on one schedule, in two parts: nothing unsafe happened, and nothing is left lying about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ledger.models import ApprovalUse, Attempt, LookUp, Operation, ReviewItem, Tenant
from ledger.queries.invariants import INVARIANTS, OF_THE_SYSTEM, tenancy
from ledger.queries.invariants.scope import Scope
from ledger.queries.snapshot import one_snapshot
from ledger.rules.states import OPEN_QUESTION, WAITS_FOR_AGENT, Outcome, State
from ledger.transactions import database_clock
from tests.crash.suite import delivered, history
from tests.crash.suite.effects import Effects, number_of
from tests.crash.suite.kept import Kept

CHECKS = tuple(check for check in INVARIANTS if check not in (*OF_THE_SYSTEM, *tenancy.CHECKS))


@dataclass(frozen=True)
class Fault:
    """Why a schedule is red. `kind`: effects, untrue, lost, stuck, twice, undelivered, fsck or history."""

    kind: str
    detail: str


@dataclass(frozen=True)
class Case:
    """What the judge is given. `may_wait`: operations may wait for an agent that may not send them any more;
    `quiet_at`: since when nobody does anything that was planned; `books`: the consumers', for `places`."""

    effects: Effects
    kept: Kept
    may_wait: bool
    quiet_at: float
    books: Path
    places: tuple[str, ...]


def judge(case: Case) -> dict[str, Any]:
    """The verdict, as data: what is wrong, and what was counted."""
    tenant = Tenant.objects.get(pk=case.effects.tenant_id)
    zombies: Counter[str] = Counter()
    books = delivered.books_of(case.books, tenant.pk, case.places)
    wrong = [
        *case.effects.what_is_wrong(zombies),
        *case.kept.what_is_wrong(),
        *(("stuck", words) for words in _stuck(case)),
        *(("fsck", words) for words in _broken(tenant.pk)),
        *(("history", words) for words in history.what_is_wrong(tenant, quiet_at=case.quiet_at)),
        *(delivered.what_is_wrong(tenant.pk, books) if books else ()),
    ]
    operations = Operation.objects.filter(tenant=tenant)
    attempts = Attempt.objects.filter(tenant=tenant)
    return {
        "faults": [asdict(Fault(*found)) for found in wrong],
        "operations": operations.count(),
        "outcomes": Counter(operations.values_list("outcome", flat=True)),
        "attempts": attempts.count(),
        "effects": len(case.effects.found),
        "approved_sends": ApprovalUse.objects.filter(tenant=tenant).count(),
        "late_sends": len(case.effects.late),
        "stale_answers": LookUp.objects.filter(attempt__in=attempts, row="stale").count(),
        "zombies": zombies,
        **delivered.counts(tenant.pk, books),
    }


def _broken(tenant_id: int) -> Iterator[str]:
    """What fsck finds in this tenant. What concerns the whole system is asked now and then (`clerk`)."""
    scope = Scope(tenant_id)
    with one_snapshot():
        for check in CHECKS:
            for broken in check(scope):
                yield f"{check.__name__} {broken.subject_id}: {broken.detail}"


def _stuck(case: Case) -> Iterator[str]:
    """Operations that never began, or that have not ended and that nobody owns; leases nobody will end."""
    now, tenant_id = database_clock(), case.effects.tenant_id
    operations = Operation.objects.filter(tenant_id=tenant_id)
    begun = {number_of(operation) for operation in operations}
    for number in () if case.may_wait else sorted(set(range(len(case.effects.marks))) - begun):
        yield f"operation:{number} never began"
    for operation in operations.filter(outcome=Outcome.OPEN):
        attempts = list(operation.attempts.order_by("number"))
        live = [a for a in attempts if not a.is_final]
        if not live or not all(_is_owned(a, may_wait=case.may_wait) for a in live):
            states = ", ".join(f"#{a.number} {a.state} {a.reason}" for a in attempts)
            yield f"{operation.operation_key}: {states}"
    for attempt in Attempt.objects.filter(tenant_id=tenant_id, lookup_lease_until__gt=now):
        yield f"{attempt} still holds a look-up lease"


def _is_owned(attempt: Attempt, *, may_wait: bool) -> bool:
    """By an open item with an owner and a due time, or by its agent, which may not send (for a reason that
    came about) and has until `start_by`."""
    if attempt.state in OPEN_QUESTION:
        asked = ReviewItem.objects.filter(attempt=attempt, closed_at=None).first()
        is_asked = asked is not None and bool(asked.owner_group_id) and asked.due_at is not None
        return is_asked and attempt.state == State.MANUAL_REVIEW
    return may_wait and attempt.state in WAITS_FOR_AGENT and attempt.start_by is not None
