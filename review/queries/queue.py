"""The queue of one person: what waits in their tenants, most urgent first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Count, Q, QuerySet, Value

from ledger.models import Approval, Decision, ReviewItem, User
from ledger.rules.vocabulary import OWNERSHIP
from review.queries.cursor import after, read_cursor, write_cursor
from review.queries.lists import decided_items, matching, on_tab, open_items, waiting_items
from review.queries.rows import RowFacts, queue_row
from review.queries.tenants import tenants_of
from review.queries.urgency import ORDER, RulesOfList, by_urgency, rules_of, rules_of_pairs
from review.queries.values import QueueFilters, QueuePage, Tab

PAGE_SIZE = 50
NEWEST_CLOSED = ("-closed_at", "-pk")
SWEEP = "sweep"

_OPEN_TABS = (Tab.MINE, Tab.TEAMS, Tab.UNOWNED, Tab.ALL, Tab.BACKING_OFF)


@dataclass(frozen=True)
class _Asked:
    """One question to the queue."""

    user: User
    filters: QueueFilters
    tenant_ids: list[int]
    now: datetime

    @property
    def wanted(self) -> Q:
        return matching(self.filters, self.user)

    def open(self) -> QuerySet[ReviewItem]:
        return open_items(self.tenant_ids).filter(self.wanted)

    def waiting(self) -> QuerySet[ReviewItem]:
        return waiting_items(self.tenant_ids).filter(self.wanted)

    def decided(self) -> QuerySet[ReviewItem]:
        return decided_items(self.tenant_ids, self.now).filter(self.wanted)


@dataclass(frozen=True)
class _Listed:
    """One page of items in order, with the rules they are under."""

    items: list[ReviewItem]
    rules: RulesOfList
    next_cursor: str | None


def queue(user: User, filters: QueueFilters) -> QueuePage:
    """One page of 50. Raises `BadFilter` for a cursor that is not ours. Queries do not grow with rows."""
    tenants = tenants_of(user)
    now, last_sweep_at = _clock_and_sweep()
    asked = _Asked(user, filters, [tenant.id for tenant in tenants], now)
    listed = _decided(asked) if filters.tab is Tab.DECIDED else _urgent(asked)
    facts = _row_facts(asked, listed)
    return QueuePage(
        tab=filters.tab,
        rows=tuple(queue_row(item, listed.rules, facts) for item in listed.items),
        counts=_counts(asked),
        next_cursor=listed.next_cursor,
        tenants=tenants,
        tools=listed.rules.tools,
        last_sweep_at=last_sweep_at,
        as_of=now,
    )


def _urgent(asked: _Asked) -> _Listed:
    waiting = asked.filters.tab is Tab.WAITING
    every = asked.waiting() if waiting else asked.open()
    rules = rules_of(every)
    as_of, place = _place(asked)
    items = every.filter(on_tab(asked.filters.tab, asked.user, asked.now))
    ordered = by_urgency(items, rules, as_of)
    page, more = _page(ordered.filter(after(ORDER, place)) if place else ordered)
    cursor = write_cursor(asked.filters.tab, as_of, _urgency_key(page[-1])) if more else None
    return _Listed(page, rules, cursor)


def _decided(asked: _Asked) -> _Listed:
    as_of, place = _place(asked)
    ordered = asked.decided().order_by(*NEWEST_CLOSED)
    page, more = _page(ordered.filter(after(NEWEST_CLOSED, place)) if place else ordered)
    rules = rules_of_pairs({(item.attempt.policy_id, item.attempt.tool) for item in page})
    cursor = None
    if more and page[-1].closed_at is not None:
        cursor = write_cursor(asked.filters.tab, as_of, (page[-1].closed_at, page[-1].pk))
    return _Listed(page, rules, cursor)


def _place(asked: _Asked) -> tuple[datetime, list[str | int]]:
    """The time the list is judged at, and after which row the page begins (none: at the top)."""
    if not asked.filters.cursor:
        return asked.now, []
    return read_cursor(asked.filters.tab, asked.filters.cursor)


def _page(ordered: QuerySet[ReviewItem]) -> tuple[list[ReviewItem], bool]:
    related = ("tenant", "operation", "attempt", "owner_group", "owner", "claimed_by")
    rows = ordered.select_related(*related).defer("attempt__args")[: PAGE_SIZE + 1]
    found = list(rows)
    return found[:PAGE_SIZE], len(found) > PAGE_SIZE


def _urgency_key(item: ReviewItem) -> list[str | int | datetime]:
    return [getattr(item, column) for column in ORDER]


def _row_facts(asked: _Asked, listed: _Listed) -> RowFacts:
    attempts = [item.attempt_id for item in listed.items]
    approvals = Approval.objects.filter(attempt_id__in=attempts, used_at__isnull=True, voided_at__isnull=True)
    return RowFacts(
        user_id=asked.user.pk,
        now=asked.now,
        approvals={approval.attempt_id: approval for approval in approvals},
        decisions=_last_decisions(listed.items) if asked.filters.tab is Tab.DECIDED else {},
    )


def _last_decisions(items: list[ReviewItem]) -> Mapping[str, Decision]:
    decided = Decision.objects.filter(item__in=items).exclude(kind__in=OWNERSHIP)
    return {decision.item_id: decision for decision in decided.select_related("by").order_by("at", "pk")}


def _counts(asked: _Asked) -> Mapping[Tab, int]:
    """How many items each tab would list under these filters; two queries."""
    on_tabs = {
        tab.value: Count("pk", filter=on_tab(tab, asked.user, asked.now))
        for tab in _OPEN_TABS
        if tab is not Tab.ALL
    }
    counted = asked.open().aggregate(all=Count("pk"), **on_tabs)
    others = _count_as(Tab.WAITING, asked.waiting()).union(_count_as(Tab.DECIDED, asked.decided()), all=True)
    return {Tab(name): number for name, number in (*counted.items(), *others)}


def _count_as(tab: Tab, items: QuerySet[ReviewItem]) -> QuerySet[ReviewItem, tuple[str, int]]:
    grouped = items.order_by().annotate(tab=Value(tab.value)).values("tab")
    return grouped.annotate(number=Count("pk")).values_list("tab", "number")


def _clock_and_sweep() -> tuple[datetime, datetime | None]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp(), (SELECT at FROM ledger_pulse WHERE name = %s)", [SWEEP])
        now, last_sweep_at = cursor.fetchone()
    return now, last_sweep_at
