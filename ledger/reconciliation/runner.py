"""One pass of the reconciler: claim, ask the provider outside any transaction, apply the answer."""

from __future__ import annotations

import logging
import random
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from django.db import DatabaseError

from ledger.faults import fault_point
from ledger.http import all_within
from ledger.lifecycle import apply_answer
from ledger.models import Attempt, Provider
from ledger.policies import rule_of
from ledger.providers.base import Question
from ledger.providers.pace import shared
from ledger.providers.registry import adapter_for
from ledger.pulses import beat
from ledger.queries.arguments import stored_args
from ledger.reconciliation.apart import apart
from ledger.reconciliation.claims import Claim, claim_in, due_lanes
from ledger.reconciliation.health import note_answer
from ledger.reconciliation.turns import SharedTurns
from ledger.rules.keys import correlation_id
from ledger.rules.reconcile import LookedUp, LookedUpKind
from ledger.rules.vocabulary import Effect
from ledger.transactions import durable, monotonic_s

logger = logging.getLogger(__name__)

BATCH = 20
PASS_S = 3.0
LOOK_UP_S = 15.0
"""For all pages of one look-up. With the pass it ends before a worker's task is stopped, and alone before
its lease does."""


@dataclass
class ReconcileReport:
    """How many look-ups one pass made, which row of the recovery table decided each, and whether it stopped
    before everything due was asked about."""

    looked_up: int = 0
    more: bool = False
    stale: int = 0
    rows: Counter[str] = field(default_factory=Counter)


def reconcile_once(*, at_most: int = BATCH) -> ReconcileReport:
    """Ask about attempts that are due, at most so many or for a few seconds: each provider in its turn, in an
    order that favours none. Each attempt is claimed only when its turn comes, so that a slow provider never
    lets the lease of another one run out. One whose answer cannot be applied is asked about again when its
    lease is over, and keeps no other waiting."""
    report, ends_at = ReconcileReport(), monotonic_s() + PASS_S
    found = due_lanes()
    lanes = deque(random.sample(found, len(found)))
    with shared(SharedTurns()):
        while lanes:
            claim = claim_in(lanes[0])
            if claim is None:
                lanes.popleft()
                continue
            fault_point("reconciler.claimed")
            apart(claim.attempt_id, partial(_reconcile, claim, report))
            if report.looked_up >= at_most or monotonic_s() >= ends_at:
                report.more = True
                break
            lanes.rotate(-1)
    beat("reconcile")
    return report


def _reconcile(claim: Claim, report: ReconcileReport) -> None:
    attempt = Attempt.objects.select_related("operation", "policy").get(pk=claim.attempt_id)
    provider = provider_named(attempt.tenant_id, rule_of(attempt).provider)
    looked_up = _ask(attempt, provider)
    fault_point("reconciler.answered")
    report.looked_up += 1
    follows = durable(lambda: _apply(claim, provider, looked_up))
    if follows is None:
        report.stale += 1
    else:
        report.rows[follows] += 1
    if provider is not None and not looked_up.endless:
        note_answer(provider, looked_up.kind, refused_credential=looked_up.refused_credential)


def _apply(claim: Claim, provider: Provider | None, looked_up: LookedUp) -> str | None:
    follows = apply_answer(
        attempt_id=claim.attempt_id, epoch=claim.epoch, provider=provider, looked_up=looked_up
    )
    fault_point("reconciler.before_commit")
    return follows.row if follows else None


def provider_named(tenant_id: int, name: str | None) -> Provider | None:
    """How a tenant's provider is asked; None where nobody has added it."""
    return Provider.objects.filter(tenant_id=tenant_id, name=name).first() if name else None


def _ask(attempt: Attempt, provider: Provider | None) -> LookedUp:
    """The provider's answer; whatever goes wrong in asking is an answer too, never an exception. That our own
    database is away says nothing of the adapter."""
    rule = rule_of(attempt)
    if rule.effect is Effect.READ or not rule.has_lookup:
        return LookedUp(LookedUpKind.NO_LOOKUP)
    if provider is None:
        return LookedUp(
            LookedUpKind.ADAPTER_FAILED,
            detail=f"No provider named {rule.provider!r} is configured; add it with manage.py add_provider.",
        )
    try:
        with all_within(LOOK_UP_S):
            return adapter_for(provider).look_up(question_about(attempt))
    except DatabaseError:
        raise
    except Exception as error:
        logger.exception("The adapter of provider %s failed on %s", provider.name, attempt.pk)
        return LookedUp(LookedUpKind.ADAPTER_FAILED, detail=f"{type(error).__name__}: {error}"[:1000])


def question_about(attempt: Attempt) -> Question:
    """Everything an adapter may know of an attempt. The record a person named last is the one asked for: what
    the agent named may have been merged into it, or never have been it."""
    return Question(
        tool=attempt.tool,
        args=stored_args(attempt),
        args_hash=attempt.args_hash,
        operation_key=attempt.operation.operation_key,
        idempotency_key=attempt.idempotency_key,
        correlation_id=correlation_id(str(attempt.tenant_id), attempt.operation.operation_key),
        provider_request_id=attempt.result_ref or attempt.provider_request_id,
        first_sent_at=first_sent_at(attempt),
    )


def first_sent_at(attempt: Attempt) -> datetime | None:
    """When the operation was first sent, under whatever provider key: a listing that begins later could miss
    an effect. None where nobody can know, because something may have been sent without leave."""
    attempts = Attempt.objects.filter(operation_id=attempt.operation_id)
    sends = list(attempts.values_list("dispatched_at", "maybe_sent"))
    if any(maybe_sent for _, maybe_sent in sends):
        return None
    return min((sent_at for sent_at, _ in sends if sent_at is not None), default=None)
