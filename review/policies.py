"""A policy from the desk: what publishing it would change, and publishing it.

Each raises `NotVisible`, `NotPermitted` and `PolicyRefused` (the message is written for a person).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from ledger.access import note_access
from ledger.approvals import standing_votes
from ledger.models import Attempt, ReviewItem, Tenant, User, Vote
from ledger.policies import current_snapshot, policy_of, publish_policy
from ledger.rules.canonical import MalformedJson, canonical_bytes, content_hash, read_json
from ledger.rules.policy import Policy, PolicyInvalid, parse_policy
from ledger.rules.vocabulary import AccessChangeKind
from review.access import as_administrator
from review.door import enter_tenant, require_administrator

NO_POLICY = Policy()


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
    """The tools with open work whose rule would not be what it is in force now; by name."""
    at_desk, waiting = _open_work(tenant)
    held = Counter(attempt.tool for attempt in at_desk if attempt.is_held)
    sent = Counter(attempt.tool for attempt in at_desk if not attempt.is_held)
    unsent = Counter(attempt.tool for attempt in waiting)
    votes = list(_votes_on([*at_desk, *waiting]))
    tools = sorted(tool for tool in {*held, *sent, *unsent} if _hash(before, tool) != _hash(after, tool))
    return tuple(
        _tool_change(tool, after, votes, held=held[tool], unsent=unsent[tool], sent=sent[tool])
        for tool in tools
    )


def _tool_change(
    tool: str, after: Policy, votes: Iterable[Vote], *, held: int, unsent: int, sent: int
) -> ToolChange:
    rule, of_tool = after.rule_for(tool), [vote for vote in votes if vote.attempt.tool == tool]
    return ToolChange(
        tool=tool,
        refused=rule is None,
        wants_review=rule is not None and rule.review == "always",
        votes=sum(vote.approval is None for vote in of_tool),
        approvals=len({vote.approval.pk for vote in of_tool if vote.approval is not None}),
        held=held,
        unsent=unsent,
        sent=sent,
    )


def _open_work(tenant: Tenant) -> tuple[list[Attempt], list[Attempt]]:
    """The attempts with an open item, and those that wait for their agent."""
    items = ReviewItem.objects.filter(tenant=tenant, closed_at=None).select_related("attempt")
    waiting = Attempt.objects.filter(tenant=tenant, start_by__isnull=False)
    return [item.attempt for item in items], list(waiting)


def _votes_on(attempts: list[Attempt]) -> QuerySet[Vote]:
    return standing_votes().filter(attempt__in=attempts).select_related("attempt", "approval")


def _hash(policy: Policy, tool: str) -> str | None:
    rule = policy.rule_for(tool)
    return rule.rule_hash if rule else None
