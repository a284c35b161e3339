"""What may have been done twice, of the tenants a person sees: hints, each with the work behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from ledger.models import Attempt, ReviewItem, User
from ledger.policies import rule_as_shown
from ledger.queries.arguments import sentence_of
from ledger.rules.states import State
from ledger.transactions import database_clock, one_reading
from review.queries.marked import Segment, marked_text
from review.queries.tenants import tenants_of
from review.queries.values import ContentHash, TenantView

LOOKED_BACK = timedelta(days=7)
MOST_GROUPS = 25
MOST_IN_GROUP = 5


@dataclass(frozen=True)
class Member:
    """One attempt of a group."""

    operation_id: str
    operation_key: str
    attempt_number: int
    state: State
    sent: bool
    hash: ContentHash
    sentence: tuple[Segment, ...]
    item_id: str | None  # its newest review item


@dataclass(frozen=True)
class DuplicateGroup:
    """Attempts that may be one effect done several times; `names` are the references that differ."""

    tenant: TenantView
    tool: str
    names: tuple[str, ...]
    members: tuple[Member, ...]
    more: int


@dataclass(frozen=True)
class DuplicatesPage:
    """`keys`: the same arguments under several keys. `hashes`: several arguments under one key. `records`:
    several provider records of one correlation id."""

    keys: tuple[DuplicateGroup, ...]
    hashes: tuple[DuplicateGroup, ...]
    records: tuple[DuplicateGroup, ...]
    tenants: tuple[TenantView, ...]
    since: datetime
    as_of: datetime


@dataclass(frozen=True)
class _Found:
    tenant_id: int
    names: tuple[str, ...]
    attempts: tuple[str, ...]
    total: int


def duplicates_page(user: User) -> DuplicatesPage:
    """The newest groups of the last 7 days. Queries do not grow with rows."""
    tenants, now = tenants_of(user), database_clock()
    asked = {"tenants": [tenant.id for tenant in tenants], "since": now - LOOKED_BACK}
    found = {name: _groups(sql, asked) for name, sql in _GROUPS.items()}
    with one_reading():
        members = _members([pk for groups in found.values() for group in groups for pk in group.attempts])
    by_id = {tenant.id: tenant for tenant in tenants}
    views = {name: tuple(_view(group, members, by_id) for group in found[name]) for name in found}
    return DuplicatesPage(**views, tenants=tenants, since=now - LOOKED_BACK, as_of=now)


def _groups(sql: str, asked: Mapping[str, Any]) -> tuple[_Found, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql, {**asked, "most": MOST_GROUPS})
        rows = cursor.fetchall()
    return tuple(
        _Found(tenant_id, tuple(names or ()), tuple(attempts[:MOST_IN_GROUP]), len(attempts))
        for tenant_id, names, attempts in rows
    )


def _members(attempt_ids: Sequence[str]) -> Mapping[str, tuple[Attempt, Member]]:
    attempts = Attempt.objects.filter(pk__in=attempt_ids).select_related("operation", "policy")
    items = dict(
        ReviewItem.objects.filter(attempt_id__in=attempt_ids).order_by("pk").values_list("attempt_id", "pk")
    )
    return {attempt.pk: (attempt, _member(attempt, items)) for attempt in attempts}


def _member(attempt: Attempt, items: Mapping[str, str]) -> Member:
    return Member(
        operation_id=attempt.operation_id,
        operation_key=attempt.operation.operation_key,
        attempt_number=attempt.number,
        state=State(attempt.state),
        sent=attempt.was_sent,
        hash=ContentHash(attempt.args_hash),
        sentence=marked_text(sentence_of(attempt, rule_as_shown(attempt))),
        item_id=items.get(attempt.pk),
    )


def _view(
    found: _Found, members: Mapping[str, tuple[Attempt, Member]], tenants: Mapping[int, TenantView]
) -> DuplicateGroup:
    shown = [members[pk] for pk in found.attempts]
    return DuplicateGroup(
        tenant=tenants[found.tenant_id],
        tool=shown[0][0].tool,
        names=found.names,
        members=tuple(member for _, member in shown),
        more=found.total - len(shown),
    )


_GROUPS: Mapping[str, str] = {
    "keys": """
        SELECT operation.tenant_id, NULL::text[], array_agg(attempt.id ORDER BY attempt.created_at)
        FROM ledger_operation operation JOIN ledger_attempt attempt ON attempt.operation_id = operation.id
        WHERE operation.tenant_id = ANY(%(tenants)s) AND operation.created_at >= %(since)s
          AND attempt.state NOT IN ('FAILED', 'CANCELLED', 'SUPERSEDED')
        GROUP BY operation.tenant_id, attempt.tool, attempt.args_hash
        HAVING count(DISTINCT operation.id) > 1 ORDER BY max(attempt.created_at) DESC LIMIT %(most)s
    """,
    "hashes": """
        SELECT operation.tenant_id, NULL::text[], array_agg(attempt.id ORDER BY attempt.number)
        FROM ledger_operation operation JOIN ledger_attempt attempt ON attempt.operation_id = operation.id
        WHERE operation.tenant_id = ANY(%(tenants)s) AND operation.created_at >= %(since)s
        GROUP BY operation.tenant_id, operation.id
        HAVING count(DISTINCT attempt.args_hash) > 1 ORDER BY max(attempt.created_at) DESC LIMIT %(most)s
    """,
    "records": """
        SELECT operation.tenant_id, array_agg(DISTINCT record ->> 'reference'),
               array_agg(DISTINCT attempt.id)
        FROM ledger_operation operation
        JOIN ledger_attempt attempt ON attempt.operation_id = operation.id
        JOIN ledger_lookup lookup ON lookup.attempt_id = attempt.id
        CROSS JOIN LATERAL jsonb_array_elements(lookup.records) record
        WHERE operation.tenant_id = ANY(%(tenants)s) AND operation.created_at >= %(since)s
          AND record ->> 'reference' <> ''
        GROUP BY operation.tenant_id, operation.id
        HAVING count(DISTINCT record ->> 'reference') > 1
        ORDER BY max(lookup.answered_at) DESC LIMIT %(most)s
    """,
}
