"""Tenants, agents, policies and work in any state, made by the real verbs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pgtrigger
from django.db.models import F, QuerySet

from ledger import lifecycle
from ledger.access import Grant, create_key
from ledger.lifecycle import Intent, IntentAnswer, OutcomeReport
from ledger.lifecycle.findings import apply_answer
from ledger.management.commands.create_tenant import create
from ledger.models import (
    Agent,
    ApiKey,
    Attempt,
    ParkedFact,
    PolicySnapshot,
    Provider,
    ReviewItem,
    Tenant,
    User,
)
from ledger.policies import publish_policy
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.looked_up import LookedUp, LookedUpKind, Record
from ledger.transactions import database_clock, durable

_numbers = count(1)

MAIL = "email.send"
REFUND = "refund.create"
TICKET = "ticket.open"
DEPLOY = "deploy.run"

TOOLS: Mapping[str, Mapping[str, Any]] = {
    MAIL: {
        "effect": "message",
        "idempotent": True,
        "key_ttl_s": 86_400,
        "provider": "mail",
        "summary": "Mail {subject} to {to}",
    },
    REFUND: {
        "effect": "payment",
        "idempotent": True,
        "key_ttl_s": 3_600,
        "provider": "bank",
        "summary": "Refund {amount} {currency} to {customer}",
    },
    TICKET: {"effect": "write", "summary": "Open a ticket: {title}"},
    DEPLOY: {"effect": "deployment", "review": "always", "approvals": 1, "summary": "Deploy {version}"},
}
"""A message and a payment that can be looked up, a write that cannot, a deployment a person sees first."""

ARGS: Mapping[str, Mapping[str, Any]] = {
    MAIL: {"to": "ada@example.org", "subject": "Invoice 7"},
    REFUND: {"amount": 125, "currency": "EUR", "customer": "cus_7"},
    TICKET: {"title": "Printer on fire"},
    DEPLOY: {"version": "2026.11"},
}


def tenant(slug: str = "acme", name: str = "") -> Tenant:
    """A tenant with its review group."""
    return durable(lambda: create(slug=slug, name=name or slug.title()))


def policy(
    of: Tenant, *, by: User | None = None, tools: Mapping[str, Mapping[str, Any]] = TOOLS
) -> PolicySnapshot:
    """Publish rules for these tools; every other one is refused."""
    document = {"default": "refuse", "tools": {name: dict(rule) for name, rule in tools.items()}}
    return durable(lambda: publish_policy(tenant=of, document=document, by=by))[0]


def agent(of: Tenant, owner: User, name: str = "billing-bot") -> Agent:
    return Agent.objects.create(tenant=of, name=name, owner=owner)


def key(of: Agent, *scopes: str, days: int = 90) -> ApiKey:
    """A live key; without scopes it covers every tool and target."""
    grant = Grant(scopes=list(scopes or ("tool:*", "target:*")), verbs=["ingest", "read"], days=days)
    return key_of(of, grant)[1]


def key_of(agent: Agent, grant: Grant) -> tuple[str, ApiKey]:
    """A new key's text and row."""
    return durable(lambda: create_key(agent=agent, grant=grant))


def intent_of(
    tool: str = MAIL,
    *,
    args: Mapping[str, Any] | None = None,
    operation_key: str = "",
    hash_only: bool = False,
    **more: Any,
) -> Intent:
    """An intent as an agent posts it, under a key of its own unless one is named."""
    content = dict(ARGS[tool] if args is None else args)
    raw = canonical_bytes(content)
    intent = Intent(
        operation_key=operation_key or f"{tool}:{next(_numbers)}",
        tool=tool,
        args_hash=content_hash(raw),
        args_bytes=None if hash_only else raw,
        args=None if hash_only else content,
    )
    return replace(intent, **more)


def posted(by: ApiKey, intent: Intent) -> IntentAnswer:
    """Post an intent."""
    return durable(lambda: lifecycle.record_intent(key=by, intent=intent))


def recorded(by: ApiKey, tool: str = MAIL, **intent: Any) -> Attempt:
    """An attempt just recorded: INTENT_RECORDED, or held where the rule says so."""
    standing = posted(by, intent_of(tool, **intent)).standing
    assert standing is not None, "the intent was refused"
    return standing.attempt


def dispatched(by: ApiKey, tool: str = MAIL, **intent: Any) -> Attempt:
    """An attempt that has leave."""
    return send(by, recorded(by, tool, **intent))


def send(by: ApiKey, attempt: Attempt) -> Attempt:
    """Ask for leave and get it; the attempt that may be sent."""
    answer = ask_leave(by, attempt)
    assert isinstance(answer, lifecycle.LeaveGiven), answer
    return fresh(answer.attempt)


def ask_leave(by: ApiKey, attempt: Attempt) -> lifecycle.LeaveGiven | lifecycle.LeaveRefused:
    """Ask for leave with the attempt's own arguments."""
    leave_id = f"leave-{next(_numbers)}"
    return durable(
        lambda: lifecycle.give_leave(
            key=by,
            attempt_id=attempt.pk,
            worker_id="worker-1",
            leave_id=leave_id,
            args_hash=attempt.args_hash,
        )
    )


def reported(by: ApiKey, attempt: Attempt, outcome: str, **report: Any) -> Attempt:
    """Report an outcome of an attempt."""
    said = OutcomeReport(worker_id="worker-1", outcome=outcome, **report)
    durable(lambda: lifecycle.record_outcome(key=by, attempt_id=attempt.pk, report=said))
    return fresh(attempt)


def replaced(by: ApiKey) -> tuple[Attempt, Attempt]:
    """A first attempt that failed without an effect, and its successor in flight."""
    first = reported(by, dispatched(by), "failed", no_effect=True, retryable=True, error_class="refused")
    Attempt.objects.filter(pk=first.pk).update(send_again_at=None)
    return first, send(by, first)


def unjoined(by: ApiKey, attempt: Attempt, result_ref: str = "res_1") -> ParkedFact:
    """A success told of this attempt, parked although it is known: what a restore can bring back."""
    return ParkedFact.objects.create(
        tenant=attempt.tenant,
        kind="outcome",
        attempt_told=attempt.pk,
        body=f'{{"outcome":"succeeded","result_ref":"{result_ref}","worker_id":"worker-1"}}',
        content_hash=f"v1:sha256:{next(_numbers)}",
        size=1,
        told_by=by,
        parked_at=attempt.created_at,
        last_told_at=attempt.created_at,
    )


def unknown(by: ApiKey, tool: str = MAIL, **intent: Any) -> Attempt:
    """An attempt whose agent lost contact after leave."""
    return reported(by, dispatched(by, tool, **intent), "unknown")


def confirmed(by: ApiKey, tool: str = MAIL, *, result_ref: str = "res_1", **intent: Any) -> Attempt:
    return reported(by, dispatched(by, tool, **intent), "succeeded", result_ref=result_ref)


def cancelled(by: ApiKey, attempt: Attempt) -> Attempt:
    """Cancel the operation of an attempt; the attempt as it is then."""
    durable(lambda: lifecycle.cancel_operation(key=by, operation_id=attempt.operation_id, reason="no need"))
    return fresh(attempt)


def held(by: ApiKey, **intent: Any) -> Attempt:
    """A first send that waits for an approval."""
    return recorded(by, DEPLOY, **intent)


def variant(by: ApiKey, of: Attempt, args: Mapping[str, Any]) -> Attempt:
    """The held attempt that other arguments under a known key make."""
    posted_again = intent_of(of.tool, args=args, operation_key=of.operation.operation_key)
    standing = posted(by, posted_again).standing
    assert standing is not None
    return standing.attempt


def variant_in_review(by: ApiKey) -> Attempt:
    """A payment held because other arguments came under a known key: two people have to approve it."""
    first = recorded(by, REFUND)
    return variant(by, first, {**ARGS[REFUND], "amount": 1_000 + next(_numbers)})  # never the first amount


def looked_up(
    attempt: Attempt,
    kind: LookedUpKind,
    *records: Record,
    provider: Provider | None = None,
    canary_seen: bool | None = None,
    asked_at: datetime | None = None,
) -> Attempt:
    """Apply one answer to the look-up of an attempt, asked for now where no other time is given."""
    epoch, at = fresh(attempt).lookup_epoch, asked_at or database_clock()
    answer = LookedUp(kind=kind, records=records, canary_seen=canary_seen)
    durable(
        lambda: apply_answer(
            attempt_id=attempt.pk, epoch=epoch, asked_at=at, provider=provider, looked_up=answer
        )
    )
    return fresh(attempt)


def found_absent(attempt: Attempt, *, canary_seen: bool | None = None) -> Attempt:
    """Looked up after its settle window as often as it takes, and never found."""
    for _ in range(2):
        waited(Attempt.objects.filter(pk=attempt.pk))
        attempt = looked_up(attempt, LookedUpKind.ABSENT, canary_seen=canary_seen)
    return attempt


def for_a_person(by: ApiKey, **intent: Any) -> Attempt:
    """A sent attempt in MANUAL_REVIEW: its tool has no look-up."""
    return looked_up(unknown(by, TICKET, **intent), LookedUpKind.NO_LOOKUP)


def corrected(attempt: Attempt, by: User, args: dict[str, Any]) -> Attempt:
    """What a person would have sent instead: a new held attempt."""
    item = item_of(attempt)
    durable(
        lambda: lifecycle.relink_arguments(
            item_id=item.pk, by=by, why="a slip", args_bytes=canonical_bytes(args), args=args
        )
    )
    return attempt.operation.attempts.latest("number")


def item_of(attempt: Attempt) -> ReviewItem:
    """The newest review item of an attempt."""
    return ReviewItem.objects.filter(attempt=attempt).latest("pk")


def fresh(attempt: Attempt) -> Attempt:
    """The attempt as it is stored now."""
    return Attempt.objects.select_related("operation", "policy").get(pk=attempt.pk)


def waited(attempts: QuerySet[Attempt], by: timedelta = timedelta(minutes=1), **columns: Any) -> None:
    """They have waited so much longer: for what comes late, and since they were last found absent."""
    attempts.update(
        lease_ended_at=F("lease_ended_at") - by, last_negative_at=F("last_negative_at") - by, **columns
    )


def first_sent(attempt: Attempt, ago: timedelta) -> Attempt:
    """Its provider key was shown first so long ago, and its items were opened by then."""
    first_sent_at = database_clock() - ago
    with pgtrigger.ignore():  # the time is set once: here it passes
        Attempt.objects.filter(pk=attempt.pk).update(key_first_sent_at=first_sent_at)
    earlier = attempt.key_first_sent_at
    if earlier is not None:
        ReviewItem.objects.filter(attempt=attempt).update(
            escalate_at=F("escalate_at") - (earlier - first_sent_at)
        )
    return fresh(attempt)


def at(item: ReviewItem, **columns: datetime | User | None) -> ReviewItem:
    """The item with other times or owners than the verbs give: tests do not wait for deadlines."""
    ReviewItem.objects.filter(pk=item.pk).update(**columns)
    item.refresh_from_db()
    return item
