"""What moved since a page was read: asked every few seconds, so it is at most two queries, three more where a
text is searched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q

from ledger.models import Event, ReviewItem, User
from ledger.rules.vocabulary import EventKind
from review.door import ClockTimestamp, NotVisible
from review.queries.lists import matching, on_tab
from review.queries.tenants import tenants_of
from review.queries.values import QueueFilters, Tab

# A look-up that decided nothing and a lengthened lease change nothing a person acts upon.
_SILENT = (EventKind.LOOKED_UP, EventKind.LEASE_EXTENDED)


@dataclass(frozen=True)
class Changes:
    """How many items of a list are new or back from a snooze, and how many of those known are not what they
    were."""

    new: int
    changed: int


def changes_since(user: User, filters: QueueFilters, since: datetime) -> Changes:
    """Of the list these filters make, since `since` (the `as_of` of the page that was read)."""
    moved = Event.objects.filter(operation_id=OuterRef("operation_id"), at__gt=since).exclude(
        kind__in=_SILENT
    )
    woken = Q(snoozed_until__gt=since) if filters.tab is not Tab.SNOOZED else Q(pk__in=[])
    items = ReviewItem.objects.filter(
        Q(closed_at__isnull=True) | Q(closed_at__gt=since),
        on_tab(filters.tab, user, ClockTimestamp()),
        tenant_id__in=[tenant.id for tenant in tenants_of(user)],
    )
    found = matching(items, filters, user).aggregate(
        new=Count("pk", filter=(Q(opened_at__gt=since) | woken) & Q(closed_at__isnull=True), distinct=True),
        changed=Count("pk", filter=Q(Exists(moved), opened_at__lte=since), distinct=True),
    )
    return Changes(found["new"], found["changed"])


def head_of(user: User, item_id: str) -> int:
    """The number of the newest event of the item's operation. Raises `NotVisible`."""
    visible = ReviewItem.objects.filter(
        pk=item_id,
        tenant__person_permissions__user_id=user.pk,
        tenant__person_permissions__user__is_active=True,
        tenant__person_permissions__permission__codename="view_work",
    )
    head = visible.values_list("operation__event_count", flat=True).first()
    if head is None:
        raise NotVisible(item_id)
    return head
