"""What must hold of the pages: the numbers they show are those of the rows behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import connection

from ledger.models import User
from ledger.queries.invariants.scope import Broken, Scope
from ledger.rules.states import State
from ledger.rules.vocabulary import OWNERSHIP, ReviewReason
from review.models import TenantPermission
from review.queries.lists import DECIDED_FOR
from review.queries.queue import PAGE_SIZE, queue
from review.queries.values import QueueFilters, QueuePage, Tab


def page_counts_are_query_counts(scope: Scope) -> Iterator[Broken]:
    """For everybody who sees a queue. Only the whole form asks: it concerns people, not operations."""
    if scope.operations is not None:
        return
    for user in _who_sees_a_queue(scope):
        page = queue(user, QueueFilters(tab=Tab.ALL))
        counted = _counted(user, page)
        for tab, shown in page.counts.items():
            if shown != counted[tab]:
                yield _broken(user, page, tab, f"shows {shown}, there are {counted[tab]}")
        listed = min(page.counts[Tab.ALL], PAGE_SIZE)
        if len(page.rows) != listed:
            yield _broken(user, page, Tab.ALL, f"lists {len(page.rows)} of {listed}")


def _who_sees_a_queue(scope: Scope) -> list[User]:
    held = TenantPermission.objects.filter(permission__codename="view_work")
    if scope.tenant_id is not None:
        held = held.filter(content_object_id=scope.tenant_id)
    return list(User.objects.filter(is_active=True, pk__in=held.values("user_id")).order_by("pk"))


def _broken(user: User, page: QueuePage, tab: Tab, detail: str) -> Broken:
    return Broken(page.tenants[0].id, f"queue of {user.get_username()}", f"the tab {tab} {detail}")


def _counted(user: User, page: QueuePage) -> dict[str, int]:
    """The same numbers as the tabs, counted another way."""
    parameters: dict[str, Any] = {
        "me": user.pk,
        "now": page.as_of,
        "tenants": [tenant.id for tenant in page.tenants],
        "unknown": str(State.UNKNOWN),
        "conflicting": str(ReviewReason.CONFLICTING_EVIDENCE),
        "recorded": str(State.INTENT_RECORDED),
        "ownership": [str(kind) for kind in OWNERSHIP],
        "since": page.as_of - DECIDED_FOR,
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, parameters)
        return dict(cursor.fetchall())


_COUNTED = """
    WITH deciders AS (
        SELECT held.content_object_id AS tenant_id, held.user_id
        FROM review_tenantpermission held
        JOIN auth_permission permission ON permission.id = held.permission_id
        JOIN ledger_user person ON person.id = held.user_id
        WHERE permission.codename = 'decide_work' AND person.is_active
    ),
    items AS (
        SELECT item.*, attempt.state, attempt.lookup_failures,
               item.snoozed_until IS NOT NULL AND item.snoozed_until > %(now)s AS snoozed,
               NOT EXISTS (
                   SELECT 1 FROM deciders
                   WHERE deciders.tenant_id = item.tenant_id AND deciders.user_id = item.owner_id) AND (
                   owners.is_first_owner OR NOT EXISTS (
                       SELECT 1 FROM ledger_reviewgroup_members member
                       JOIN deciders USING (user_id)
                       WHERE deciders.tenant_id = item.tenant_id
                         AND member.reviewgroup_id = item.owner_group_id)) AS unowned,
               row_number() OVER (PARTITION BY item.attempt_id ORDER BY item.id DESC) = 1 AS newest
        FROM ledger_reviewitem item
        LEFT JOIN ledger_attempt attempt ON attempt.id = item.attempt_id
        LEFT JOIN ledger_reviewgroup owners ON owners.id = item.owner_group_id
        WHERE item.tenant_id = ANY(%(tenants)s)
    ),
    open_items AS (SELECT * FROM items WHERE closed_at IS NULL AND NOT snoozed)
    SELECT 'all', count(*) FROM open_items
    UNION ALL SELECT 'mine', count(*) FROM open_items
        WHERE owner_id = %(me)s OR (claimed_by_id = %(me)s AND claim_until > %(now)s)
           OR (reason = %(conflicting)s AND EXISTS (
               SELECT 1 FROM ledger_statement said WHERE said.attempt_id = open_items.attempt_id
                 AND said.by_id = %(me)s AND said.contradicted_at IS NOT NULL))
    UNION ALL SELECT 'teams', count(*) FROM open_items
        WHERE owner_group_id IN (SELECT reviewgroup_id FROM ledger_reviewgroup_members WHERE user_id = %(me)s)
    UNION ALL SELECT 'unowned', count(*) FROM open_items WHERE unowned
    UNION ALL SELECT 'backing_off', count(*) FROM open_items WHERE state = %(unknown)s AND lookup_failures > 0
    UNION ALL SELECT 'snoozed', count(*) FROM items WHERE closed_at IS NULL AND snoozed
    UNION ALL SELECT 'waiting', count(*) FROM items
        JOIN ledger_approval approval ON approval.attempt_id = items.attempt_id
         AND approval.used_at IS NULL AND approval.voided_at IS NULL
        WHERE newest AND (closed_at IS NULL OR state = %(recorded)s)
    UNION ALL SELECT 'decided', count(*) FROM items
        WHERE closed_at >= %(since)s AND EXISTS (
            SELECT 1 FROM ledger_decision decision
            WHERE decision.item_id = items.id AND decision.kind <> ALL(%(ownership)s))
"""
