"""What must hold at every moment, as one small function each; `manage.py fsck` asks them all in one snapshot.

To add one: write `def what_holds(scope) -> Iterable[Broken]` beside its kin and list it in their CHECKS;
plant its fault in tests/ledger/fsck, where a check without a fault fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, connection, transaction

from ledger.models import Tenant
from ledger.queries.invariants import (
    approvals,
    attempts,
    budgets,
    deliveries,
    delivery_states,
    history,
    parked,
    relinks,
    statements,
    system,
    tenancy,
)
from ledger.queries.invariants.scope import Broken, Check, Scope

OF_THE_SYSTEM: list[Check] = [*tenancy.OF_THE_SYSTEM, *system.CHECKS]
"""Asked once, whatever the scope; the apps above add theirs with `register_checks`."""

INVARIANTS: list[Check] = [
    *attempts.CHECKS,
    *approvals.CHECKS,
    *deliveries.CHECKS,
    *delivery_states.CHECKS,
    *budgets.CHECKS,
    *history.CHECKS,
    *parked.CHECKS,
    *relinks.CHECKS,
    *statements.CHECKS,
    *tenancy.CHECKS,
    *OF_THE_SYSTEM,
]

_DAMAGED = (DatabaseError, ObjectDoesNotExist, LookupError, ValueError, TypeError, AttributeError)


@dataclass(frozen=True)
class Finding:
    """One place where one invariant is broken; no tenant where it is the whole system's."""

    invariant: str
    tenant: str
    subject_id: str
    detail: str


def register_checks(*checks: Check) -> None:
    """An app above the ledger adds what must hold of its own; doing so again changes nothing."""
    for check in checks:
        if check not in INVARIANTS:
            OF_THE_SYSTEM.append(check)
            INVARIANTS.append(check)


def findings(tenant: Tenant | None = None) -> Iterator[Finding]:
    """Every finding, in a fixed order, as the transaction of the caller sees the ledger."""
    scope, slugs = Scope(tenant.pk if tenant else None), tenant_slugs()
    for check in INVARIANTS:
        yield from findings_of(check, scope, slugs)


def findings_of(check: Check, scope: Scope, slugs: dict[int | None, str]) -> Iterator[Finding]:
    """Where one invariant is broken. Of an empty scope only what is the whole system's is asked."""
    parts = [scope] if check in OF_THE_SYSTEM else scope.parts()
    for part in parts:
        for broken in _asked(check, part):
            yield Finding(check.__name__, slugs.get(broken.tenant_id, ""), broken.subject_id, broken.detail)


def tenant_slugs() -> dict[int | None, str]:
    """The name of each tenant by its id."""
    return dict(Tenant.objects.values_list("pk", "slug"))


def _asked(check: Check, scope: Scope) -> Iterator[Broken]:
    """A check that cannot even be asked (a history that is no JSON any more, a statement that takes too long)
    is a finding, not the end; a connection that is gone is the end."""
    try:
        with transaction.atomic():
            yield from check(scope)
    except _DAMAGED as error:
        if connection.connection is None or connection.connection.closed:
            raise
        yield Broken(None, "", f"could not be checked: {_in_a_line(error)}")


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
