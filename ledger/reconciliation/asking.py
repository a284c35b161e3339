"""Ask one provider about one attempt. Nothing here reads the database, so that many may be asked at once."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import datetime

from ledger.http import all_within
from ledger.models import Attempt, Provider
from ledger.policies import rule_of
from ledger.providers.base import Question
from ledger.providers.registry import adapter_for
from ledger.queries.arguments import stored_args
from ledger.reconciliation.errands import PassIsOver
from ledger.rules.keys import correlation_id
from ledger.rules.looked_up import LookedUp, LookedUpKind

logger = logging.getLogger(__name__)

LOOK_UP_S = 15.0
"""For all pages of one look-up. With the pass it ends before a worker's task is stopped, and alone before
its lease does."""


def question_about(attempt: Attempt, sends: Mapping[str, datetime | None] | None = None) -> Question:
    """Everything an adapter may know of an attempt. The record a person named last is the one asked for: what
    the agent named may have been merged into it, or never have been it. `sends`: the first ones of some
    operations, where they are known."""
    operation = attempt.operation
    sends = sends or first_sends([operation.pk])
    return Question(
        tool=attempt.tool,
        args=stored_args(attempt),
        args_hash=attempt.args_hash,
        operation_key=operation.operation_key,
        idempotency_key=attempt.idempotency_key,
        correlation_id=correlation_id(str(attempt.tenant_id), operation.operation_key),
        provider_request_id=attempt.result_ref or attempt.provider_request_id,
        first_sent_at=sends[operation.pk],
    )


def first_sends(operation_ids: Collection[str]) -> Mapping[str, datetime | None]:
    """When each operation was first sent, under whatever provider key: a listing that begins later could miss
    an effect. None where nobody can know, because something may have been sent without leave, or nothing
    was."""
    sends: dict[str, list[tuple[datetime | None, bool]]] = {pk: [] for pk in operation_ids}
    of_these = Attempt.objects.filter(operation_id__in=operation_ids)
    for operation_id, sent_at, maybe_sent in of_these.values_list(
        "operation_id", "dispatched_at", "maybe_sent"
    ):
        sends[operation_id].append((sent_at, maybe_sent))
    return {operation_id: _first(of_it) for operation_id, of_it in sends.items()}


def _first(sends: list[tuple[datetime | None, bool]]) -> datetime | None:
    if any(maybe_sent for _, maybe_sent in sends):
        return None
    return min((sent_at for sent_at, _ in sends if sent_at is not None), default=None)


def answer_about(attempt: Attempt, provider: Provider | None, question: Question) -> LookedUp:
    """The provider's answer; whatever goes wrong in asking is an answer too. Raises PassIsOver where nobody
    waits for it any more."""
    rule = rule_of(attempt)
    if not rule.has_lookup:
        return LookedUp(LookedUpKind.NO_LOOKUP)
    if provider is None:
        return LookedUp(
            LookedUpKind.ADAPTER_FAILED,
            detail=f"No provider named {rule.provider!r} is configured; add it with manage.py add_provider.",
        )
    try:
        with all_within(LOOK_UP_S):
            return adapter_for(provider).look_up(question)
    except PassIsOver:
        raise
    except Exception as error:
        logger.exception("The adapter of provider %s failed on %s", provider.name, attempt.pk)
        return LookedUp(LookedUpKind.ADAPTER_FAILED, detail=f"{type(error).__name__}: {error}"[:1000])
