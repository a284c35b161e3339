"""A policy from the desk: what publishing it would change, and publishing it.

Each raises `NotVisible`, `NotPermitted` and `PolicyRefused` (the message is written for a person).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from ledger.access import note_access
from ledger.approvals import standing_votes
from ledger.models import Attempt, ReviewItem, Tenant, User
from ledger.policies import current_snapshot, policy_of, publish_policy
from ledger.rules.canonical import MalformedJson, canonical_bytes, content_hash, read_json
from ledger.rules.policy import Policy, PolicyInvalid, parse_policy
from ledger.rules.states import State
from ledger.rules.vocabulary import AccessChangeKind
from review.access import as_administrator
from review.door import enter_tenant, require_administrator

NO_POLICY = Policy()
_HELD = Q(attempt__state=State.MANUAL_REVIEW, attempt__dispatched_at=None, attempt__maybe_sent=False)
"""An item whose attempt `is_held`."""


class PolicyRefused(Exception):
    """It cannot be published: what was typed cannot be read, or another version came between."""


@dataclass(frozen=True)
class ToolChange:
    """What publishing means for the work of one tool, whose rule changes. `refused`: no rule allows it any
    more. `votes` and `approvals` no longer cover what would be sent; `held`: unsent attempts at the desk;
    `unsent`: those that wait for their agent; `sent`: sent ones at the desk, which keep their rule."""

    tool: str
    refused: bool
    wants_review: bool
    votes: int
    approvals: int
    held: int
    unsent: int
    sent: int


@dataclass(frozen=True)
class Yes:
    """Of one tool: votes of rounds under way, and approvals that wait to be used."""

    votes: int
    approvals: int


@dataclass(frozen=True)
class DryRun:
    """A document that could be published, and what would follow. `base`: the version it would replace, 0 for
    none; `is_new`: it differs from that."""

    document: dict[str, Any]
    before: dict[str, Any]
    hash: str
    base: int
    is_new: bool
    tools: tuple[ToolChange, ...]


def dry_run(user: User, slug: str, *, typed: str) -> DryRun:
    """What publishing this text would change now; nothing is written."""
    tenant, rights = enter_tenant(user, slug)
    require_administrator(tenant, rights)
    document = _read(typed)
    current = current_snapshot(tenant.pk)
    hashed = content_hash(canonical_bytes(document))
    return DryRun(
        document=document,
        before=current.document if current else {},
        hash=hashed,
        base=current.version if current else 0,
        is_new=current is None or current.content_hash != hashed,
        tools=_changed_tools(tenant, policy_of(current) if current else NO_POLICY, parse_policy(document)),
    )


def publish(user: User, slug: str, *, typed: str, base: int, why: str) -> int:
    """Put it in force at once; its version. Who publishes it may not approve sends of the tools whose rule it
    changes. `base`: the version this person saw in force."""
    document = _read(typed)

    def work(tenant: Tenant) -> int:
        current = current_snapshot(tenant.pk)
        if (current.version if current else 0) != base:
            raise PolicyRefused("Another version was published since this page was read: check again.")
        snapshot, is_new = publish_policy(tenant=tenant, document=document, by=user)
        if not is_new:
            raise PolicyRefused("This is what is in force already: nothing was published.")
        kind, version = AccessChangeKind.POLICY_PUBLISHED, snapshot.version
        note_access(kind, tenant_id=tenant.pk, by=user, why=why, version=version)
        return int(version)

    return as_administrator(user, slug, work)


def _read(typed: str) -> dict[str, Any]:
    try:
        document = read_json(typed.encode("utf-8", "surrogatepass"))
        parse_policy(document)
    except MalformedJson as error:
        raise PolicyRefused(f"This cannot be read: {error.detail}.") from None
    except PolicyInvalid as invalid:
        raise PolicyRefused(f"At {invalid.path or 'the top'}: {invalid.problem}.") from None
    return document


def _changed_tools(tenant: Tenant, before: Policy, after: Policy) -> tuple[ToolChange, ...]:
    """The tools with open work whose rule would not be what it is in force now; by name. Counted where it is
    stored, for there may be very much."""
    items = ReviewItem.objects.filter(tenant=tenant, closed_at=None)
    waiting = Attempt.objects.filter(tenant=tenant, start_by__isnull=False)
    held = _by_tool(items.filter(_HELD), "attempt__tool")
    sent = _by_tool(items.exclude(_HELD), "attempt__tool")
    unsent = _by_tool(waiting, "tool")
    yeses = _yeses(items.values("attempt").union(waiting.values("pk")))
    tools = sorted(tool for tool in {*held, *sent, *unsent} if _hash(before, tool) != _hash(after, tool))
    return tuple(
        _tool_change(tool, after, yeses.get(tool), held=held[tool], unsent=unsent[tool], sent=sent[tool])
        for tool in tools
    )


def _tool_change(
    tool: str, after: Policy, yes: Yes | None, *, held: int, unsent: int, sent: int
) -> ToolChange:
    rule = after.rule_for(tool)
    return ToolChange(
        tool=tool,
        refused=rule is None,
        wants_review=rule is not None and rule.review == "always",
        votes=yes.votes if yes else 0,
        approvals=yes.approvals if yes else 0,
        held=held,
        unsent=unsent,
        sent=sent,
    )


def _by_tool(work: QuerySet[Any], tool: str) -> Counter[str]:
    return Counter(dict(work.order_by().values_list(tool).annotate(Count("pk"))))


def _yeses(attempts: QuerySet[Any]) -> dict[str, Yes]:
    """By tool."""
    votes = standing_votes().filter(attempt__in=attempts).order_by().values_list("attempt__tool")
    counted = votes.annotate(
        votes=Count("pk", filter=Q(approval=None)), approvals=Count("approval", distinct=True)
    )
    return {tool: Yes(votes, approvals) for tool, votes, approvals in counted}


def _hash(policy: Policy, tool: str) -> str | None:
    rule = policy.rule_for(tool)
    return rule.rule_hash if rule else None
