"""What must hold at every moment, as one small function each; `manage.py fsck` asks them all in one snapshot.

To add one: write `def what_holds(scope) -> Iterable[Broken]` beside its kin and list it in their CHECKS;
plant its fault in tests/ledger/fsck, where a check without a fault fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import DatabaseError, transaction

from ledger.models import Tenant
from ledger.queries.invariants import (
    approvals,
    attempts,
    budgets,
    deliveries,
    history,
    parked,
    system,
    tenancy,
)
from ledger.queries.invariants.scope import Broken, Check, Scope
from ledger.queries.snapshot import one_snapshot

INVARIANTS: tuple[Check, ...] = (
    *attempts.CHECKS,
    *approvals.CHECKS,
    *deliveries.CHECKS,
    *budgets.CHECKS,
    *history.CHECKS,
    *parked.CHECKS,
    *tenancy.CHECKS,
    *system.CHECKS,
)


@dataclass(frozen=True)
class Finding:
    """One place where one invariant is broken; no tenant where it is the whole system's."""

    invariant: str
    tenant: str
    subject_id: str
    detail: str


def broken_invariants(tenant: Tenant | None = None) -> Iterator[Finding]:
    """Every finding, in a fixed order, seen in one read-only snapshot. Call it outside any transaction."""
    with one_snapshot():
        yield from findings(tenant)


def findings(tenant: Tenant | None = None) -> Iterator[Finding]:
    """Every finding, as the transaction of the caller sees the ledger."""
    scope = Scope(tenant.pk if tenant else None)
    slugs: dict[int | None, str] = dict(Tenant.objects.values_list("pk", "slug"))
    for check in INVARIANTS:
        for broken in _asked(check, scope):
            yield Finding(check.__name__, slugs.get(broken.tenant_id, ""), broken.subject_id, broken.detail)


def _asked(check: Check, scope: Scope) -> Iterator[Broken]:
    """A check that cannot even be asked (a history that is no JSON any more) is a finding, not the end."""
    try:
        with transaction.atomic():
            yield from check(scope)
    except DatabaseError as error:
        yield Broken(None, "", f"could not be checked: {str(error).splitlines()[0]}")
