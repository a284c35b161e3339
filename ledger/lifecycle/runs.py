"""Runs: opened once with their limits, their usage counted once, their checkpoints only growing."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import IntegrityError, transaction

from ledger import budgets
from ledger.lifecycle.case import Case
from ledger.lifecycle.values import CheckpointNotGrowing, RunAnswer, UnknownObject
from ledger.models import ApiKey, Attempt, BudgetUnit, Run, RunCheckpoint
from ledger.queries.for_agents import run_named
from ledger.rules.vocabulary import EventKind
from ledger.transactions import database_clock, require_transaction

OF_ATTEMPT = "attempt:"
"""Begins the usage ids of what outcomes report; no agent may post one, or it would be counted no more."""


def open_run(*, key: ApiKey, name: str, limits: Mapping[str, int | None]) -> RunAnswer:
    """Open the run with these limits, or answer with the account it has: nothing posted later changes a
    limit."""
    require_transaction()
    run = run_named(key.tenant_id, name)
    if run is None:
        inserted = _insert_run(key, name, limits)
        if inserted is not None:
            return RunAnswer(inserted, created=True)
        run = Run.objects.get(tenant_id=key.tenant_id, name=name)
    has = {account.unit: account.limit for account in run.accounts.all()}
    return RunAnswer(run, matches=all(has[unit] == limits.get(unit) for unit in has))


def _insert_run(key: ApiKey, name: str, limits: Mapping[str, int | None]) -> Run | None:
    """The new run, or None where another request opened it first."""
    try:
        with transaction.atomic():
            run = Run.objects.create(tenant_id=key.tenant_id, name=name, created_at=database_clock())
            budgets.open_accounts(run, limits)
            return run
    except IntegrityError:
        return None


def record_usage(*, key: ApiKey, name: str, usage_id: str, amounts: Mapping[str, int]) -> RunAnswer:
    """Count usage of a run once per `usage_id`; the same id with other amounts does not match."""
    run = _opened(key, name)
    if budgets.enter_usage(run, usage_id=usage_id, amounts=amounts, now=database_clock()) is not None:
        return RunAnswer(run)
    counted = budgets.counted_usage(run, usage_id)
    return RunAnswer(
        run, matches=counted == {unit: amount for unit, amount in amounts.items() if amount}, replayed=True
    )


def record_run_checkpoint(
    *, key: ApiKey, name: str, sequence: int, reference: str, content_hash: str
) -> RunAnswer:
    """Store where the run can go on from. Raises `CheckpointNotGrowing` unless `sequence` is the highest
    yet."""
    run = _opened(key, name)
    Run.objects.select_for_update().get(pk=run.pk)
    newest = run.checkpoints.order_by("-sequence").first()
    if newest is not None and newest.sequence >= sequence:
        same = run.checkpoints.filter(sequence=sequence, reference=reference, content_hash=content_hash)
        if same.exists():
            return RunAnswer(run, replayed=True)
        raise CheckpointNotGrowing(newest)
    RunCheckpoint.objects.create(
        tenant_id=run.tenant_id,
        run=run,
        sequence=sequence,
        reference=reference,
        content_hash=content_hash,
        at=database_clock(),
    )
    return RunAnswer(run)


def count_usage_of(case: Case, attempt: Attempt, usage: Mapping[str, int]) -> None:
    """Turns and tokens that an outcome reports, once per attempt; tool calls are posted with the
    confirmation."""
    amounts = {str(unit): usage[unit] for unit in (BudgetUnit.TURNS, BudgetUnit.TOKENS) if usage.get(unit)}
    run = case.operation.run
    if run is not None and amounts:
        overrun = budgets.enter_usage(
            run, usage_id=f"{OF_ATTEMPT}{attempt.pk}", amounts=amounts, now=case.now
        )
        if overrun:
            case.record(EventKind.OVERRUN, attempt, units=list(overrun))


def _opened(key: ApiKey, name: str) -> Run:
    """The run of that name. Raises `UnknownObject`."""
    run = run_named(key.tenant_id, name)
    if run is None:
        raise UnknownObject
    return run
