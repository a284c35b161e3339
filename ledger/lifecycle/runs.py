"""Runs: opened once with their limits, their usage counted once, their checkpoints only growing."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import IntegrityError, transaction

from ledger import budgets
from ledger.lifecycle.case import Case
from ledger.lifecycle.values import CheckpointNotGrowing, RunAnswer, UnknownObject, usage_in
from ledger.models import ApiKey, Attempt, Run, RunCheckpoint
from ledger.policies import rule_now
from ledger.queries.for_agents import run_named
from ledger.rules.amounts import COUNTED, Amount
from ledger.rules.budgets import Units
from ledger.rules.reports import Reported
from ledger.rules.vocabulary import EventKind
from ledger.transactions import database_clock, require_transaction

OF_ATTEMPT = "attempt:"
"""Begins the usage ids of what outcomes report; no agent may post one, or it would be counted no more."""


def open_run(*, key: ApiKey, name: str, limits: Mapping[str, Amount | None]) -> RunAnswer:
    """Open the run with these limits, or answer with the account it has: nothing posted later changes a
    limit. Units as `rules.amounts.read_unit` spells them; None: counted without a limit."""
    require_transaction()
    run = run_named(key.tenant_id, name)
    if run is None:
        inserted = _insert_run(key, name, limits)
        if inserted is not None:
            return RunAnswer(inserted, created=True)
        run = Run.objects.get(tenant_id=key.tenant_id, name=name)
    return RunAnswer(run, matches=_has(run, limits))


def _has(run: Run, limits: Mapping[str, Amount | None]) -> bool:
    """Are these its limits, whatever units it met since?"""
    has: dict[str, Amount | None] = {account.unit: account.limit for account in run.accounts.all()}
    unnamed = budgets.limit_of_unnamed_in(run)
    return all(
        has.get(unit, unnamed) == limits.get(unit, None if unit in COUNTED else unnamed)
        for unit in {*has, *limits}
    )


def _insert_run(key: ApiKey, name: str, limits: Mapping[str, Amount | None]) -> Run | None:
    """The new run, or None where another request opened it first."""
    try:
        with transaction.atomic():
            run = Run.objects.create(tenant_id=key.tenant_id, name=name, created_at=database_clock())
            budgets.open_accounts(run, limits)
            return run
    except IntegrityError:
        return None


def record_usage(*, key: ApiKey, name: str, usage_id: str, amounts: Units) -> RunAnswer:
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


def count_usage_of(case: Case, attempt: Attempt, usage: Units) -> None:
    """What an outcome reports beside the cost of the send itself, once per attempt and unit; the actual of
    the cost is posted with the confirmation."""
    run = case.operation.run
    if run is None or not usage:
        return
    cost = budgets.cost_of_attempt(attempt, rule_now(attempt))
    amounts = {unit: used for unit, used in usage.items() if used and unit not in cost}
    if amounts:
        overrun = budgets.enter_further_usage(
            run, usage_id=f"{OF_ATTEMPT}{attempt.pk}", amounts=amounts, now=case.now
        )
        if overrun:
            case.record(EventKind.OVERRUN, attempt, units=list(overrun))


def reported_actual(attempt: Attempt) -> Units:
    """What its agent said it used in reports of success, the last word for each unit: whoever confirms it."""
    actual: dict[str, Amount] = {}
    for event in attempt.events.filter(kind=EventKind.OUTCOME_REPORTED).order_by("sequence"):
        if event.data["outcome"] == Reported.SUCCEEDED and "by_revoked_key" not in event.data:
            actual |= usage_in(event.data)
    return actual


def _opened(key: ApiKey, name: str) -> Run:
    """The run of that name. Raises `UnknownObject`."""
    run = run_named(key.tenant_id, name)
    if run is None:
        raise UnknownObject
    return run
