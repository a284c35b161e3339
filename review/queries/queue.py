"""The queue of one person: what waits in their tenants, most urgent first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db import connection
from django.db.models import Count, QuerySet, Value

from ledger.models import Approval, Attempt, Decision, ReviewItem, User
from ledger.rules.vocabulary import OWNERSHIP
from review.models import Absence
from review.queries.cursor import Place, page_at, place_of
from review.queries.lists import decided_items, matching, on_tab, open_items, waiting_items
from review.queries.rows import RowFacts, queue_row
from review.queries.tenants import tenants_of
from review.queries.urgency import ORDER, RulesOfList, rules_of, rules_of_pairs, with_urgency
from review.queries.values import QueueFilters, QueuePage, Tab
from review.queries.voting import votes_so_far

PAGE_SIZE = 50
NEWEST_CLOSED = ("-closed_at", "-pk")
SWEEP = "sweep"

_OPEN_TABS = (Tab.MINE, Tab.TEAMS, Tab.UNOWNED, Tab.ALL, Tab.BACKING_OFF, Tab.SNOOZED)


@dataclass(frozen=True)
class _Asked:
    """One question to the queue."""

    user: User
    filters: QueueFilters
    tenant_ids: list[int]
    now: datetime

    @property
    def place(self) -> Place:
        return place_of(self.filters.tab, self.filters.cursor, self.now)

    @cached_property
    def open(self) -> QuerySet[ReviewItem]:
        return self._wanted(open_items(self.tenant_ids))

    @cached_property
    def waiting(self) -> QuerySet[ReviewItem]:
        return self._wanted(waiting_items(self.tenant_ids))

    @cached_property
    def decided(self) -> QuerySet[ReviewItem]:
        return self._wanted(decided_items(self.tenant_ids, self.now))

    def _wanted(self, items: QuerySet[ReviewItem]) -> QuerySet[ReviewItem]:
        return matching(items, self.filters, self.user)


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
    every = asked.waiting if waiting else asked.open
    rules = rules_of(every)
    items = every.filter(on_tab(asked.filters.tab, asked.user, asked.now))
    place = asked.place
    page, next_cursor = _page(place, with_urgency(items, rules, place.as_of), ORDER)
    return _Listed(page, rules, next_cursor)


def _decided(asked: _Asked) -> _Listed:
    page, next_cursor = _page(asked.place, asked.decided, NEWEST_CLOSED)
    rules = rules_of_pairs({(item.attempt.policy_id, item.attempt.tool) for item in page})
    return _Listed(page, rules, next_cursor)


def _page(
    place: Place, items: QuerySet[ReviewItem], columns: Sequence[str]
) -> tuple[list[ReviewItem], str | None]:
    related = ("tenant", "operation", "attempt", "owner_group", "owner", "claimed_by")
    read = items.annotate(owner_away_until=Absence.of_owner()).select_related(*related)
    return page_at(place, read.defer("attempt__args"), columns, PAGE_SIZE)


def _row_facts(asked: _Asked, listed: _Listed) -> RowFacts:
    decided = asked.filters.tab is Tab.DECIDED
    attempts = [item.attempt for item in listed.items]
    return RowFacts(
        user_id=asked.user.pk,
        now=asked.now,
        approvals={} if decided else _waiting_approvals(attempts),
        decisions=_decisions(listed.items) if decided else {},
        votes={} if decided else votes_so_far(attempts, asked.now),
    )


def _waiting_approvals(attempts: list[Attempt]) -> Mapping[str, Approval]:
    waiting = Approval.objects.filter(attempt__in=attempts, used_at__isnull=True, voided_at__isnull=True)
    return {approval.attempt_id: approval for approval in waiting}


def _decisions(items: list[ReviewItem]) -> Mapping[str, Sequence[Decision]]:
    """What people decided about these items, newest first; by item id."""
    found: dict[str, list[Decision]] = defaultdict(list)
    decided = Decision.objects.filter(item__in=items).exclude(kind__in=OWNERSHIP)
    for decision in decided.select_related("by", "vote__approval", "statement").order_by("-at", "-pk"):
        found[decision.item_id].append(decision)
    return found


def _counts(asked: _Asked) -> Mapping[Tab, int]:
    """How many items each tab would list under these filters; two queries."""
    on_tabs = {tab.value: Count("pk", filter=on_tab(tab, asked.user, asked.now)) for tab in _OPEN_TABS}
    counted = asked.open.aggregate(**on_tabs)
    others = _count_as(Tab.WAITING, asked.waiting).union(_count_as(Tab.DECIDED, asked.decided), all=True)
    return {Tab(name): number for name, number in (*counted.items(), *others)}


def _count_as(tab: Tab, items: QuerySet[ReviewItem]) -> QuerySet[ReviewItem, tuple[str, int]]:
    grouped = items.order_by().annotate(tab=Value(tab.value)).values("tab")
    return grouped.annotate(number=Count("pk")).values_list("tab", "number")


def _clock_and_sweep() -> tuple[datetime, datetime | None]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp(), (SELECT at FROM ledger_pulse WHERE name = %s)", [SWEEP])
        now, last_sweep_at = cursor.fetchone()
    return now, last_sweep_at
