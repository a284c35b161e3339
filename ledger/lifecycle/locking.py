"""Every verb locks its operation row first: late outcomes, leave, decisions and cancels become a queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.models import QuerySet

from ledger.events import Actor
from ledger.lifecycle.case import Case, load_case
from ledger.lifecycle.settling import settle
from ledger.lifecycle.values import UnknownObject
from ledger.models import Attempt, Operation
from ledger.rules.canonical import canonical_bytes
from ledger.transactions import require_transaction


@contextmanager
def locked_operation(operation_id: str, *, tenant_id: int | None, actor: Actor) -> Iterator[Case]:
    """Lock an operation first, then everything of it; settle it on the way out if its outcome changed.

    Raises `UnknownObject` where the tenant has none of that id (`tenant_id` None: the system itself asks).
    """
    case = _lock(Operation.objects.filter(pk=operation_id), tenant_id, actor)
    yield case
    if case.moved:
        settle(case)


@contextmanager
def locked_attempt(attempt_id: str, *, tenant_id: int | None, actor: Actor) -> Iterator[tuple[Case, Attempt]]:
    """Like `locked_operation`, by the id of one of its attempts."""
    found = Attempt.objects.filter(pk=attempt_id).values_list("operation_id", "tenant_id").first()
    if found is None or (tenant_id is not None and found[1] != tenant_id):
        raise UnknownObject
    with locked_operation(found[0], tenant_id=tenant_id, actor=actor) as case:
        yield case, case.attempt(attempt_id)


def lock_name(*parts: object, shared: bool = False) -> None:
    """Hold this name until the transaction ends: whoever else wants it waits, though it may be no row yet.
    `shared`: only those wait who want it for themselves."""
    lock = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {lock}(hashtextextended(%s, 0))", [canonical_bytes(parts).decode()])


def _lock(rows: QuerySet[Operation], tenant_id: int | None, actor: Actor) -> Case:
    require_transaction()
    if tenant_id is not None:
        rows = rows.filter(tenant_id=tenant_id)
    operation = rows.select_for_update().first()
    if operation is None:
        raise UnknownObject
    return load_case(operation, actor)
