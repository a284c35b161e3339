"""Which items are on which list of the queue, as conditions on `ReviewItem`."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, Func, OuterRef, Q, QuerySet

from ledger.models import Approval, Decision, ReviewItem, Statement, User
from ledger.rules.states import State
from ledger.rules.vocabulary import OWNERSHIP, ReviewReason
from review.models import TenantPermission
from review.queries.urgency import rules_of
from review.queries.values import QueueFilters, Tab

DECIDED_FOR = timedelta(hours=24)


def open_items(tenant_ids: list[int]) -> QuerySet[ReviewItem]:
    """The open questions of these tenants."""
    return ReviewItem.objects.filter(tenant_id__in=tenant_ids, closed_at__isnull=True)


def waiting_items(tenant_ids: list[int]) -> QuerySet[ReviewItem]:
    """Approved work whose agent has not had leave yet. Of an attempt whose item is closed, the newest one."""
    approved = Approval.objects.filter(tenant_id__in=tenant_ids, used_at__isnull=True, voided_at__isnull=True)
    newer = ReviewItem.objects.filter(attempt_id=OuterRef("attempt_id"), pk__gt=OuterRef("pk"))
    still_to_send = Q(closed_at__isnull=True) | Q(attempt__state=State.INTENT_RECORDED)
    return ReviewItem.objects.filter(
        still_to_send, ~Exists(newer), tenant_id__in=tenant_ids, attempt_id__in=approved.values("attempt_id")
    )


def decided_items(tenant_ids: list[int], now: datetime) -> QuerySet[ReviewItem]:
    """Closed within the last 24 hours, after a person had decided something about them."""
    decided = Decision.objects.filter(item_id=OuterRef("pk")).exclude(kind__in=OWNERSHIP)
    return ReviewItem.objects.filter(
        Exists(decided), tenant_id__in=tenant_ids, closed_at__gte=now - DECIDED_FOR
    )


Moment = datetime | Func
"""A time, or the database's expression for one."""


def on_tab(tab: Tab, user: User, now: Moment) -> Q:
    """What narrows the open items to one tab."""
    if tab is Tab.SNOOZED:
        return Q(snoozed_until__gt=now)
    return awake(now) & _whose(tab, user, now)


def awake(now: Moment) -> Q:
    """Not snoozed, or no more: a snooze ends by itself."""
    return Q(snoozed_until__isnull=True) | Q(snoozed_until__lte=now)


def _whose(tab: Tab, user: User, now: Moment) -> Q:
    return {
        Tab.MINE: Q(owner=user) | Q(claimed_by=user, claim_until__gt=now) | _contradicts(user),
        Tab.TEAMS: Q(owner_group__in=user.review_groups.values("pk")),
        Tab.UNOWNED: unowned(),
        Tab.BACKING_OFF: Q(attempt__state=State.UNKNOWN, attempt__lookup_failures__gt=0),
    }.get(tab, Q())


def _contradicts(user: User) -> Q:
    """Open conflicts with what this person said became of it: whoever decided hears of it."""
    said = Statement.objects.filter(by=user, contradicted_at__isnull=False)
    return Q(reason=ReviewReason.CONFLICTING_EVIDENCE, attempt__in=said.values("attempt"))


def unowned() -> Q:
    """Nobody in particular: no person who decides work there, and the first team or one without anybody who
    does."""
    who_decide = TenantPermission.objects.filter(
        content_object_id=OuterRef("tenant_id"), permission__codename="decide_work", user__is_active=True
    )
    acts = Exists(who_decide.filter(user_id=OuterRef("owner_id")))
    somebody = Exists(who_decide.filter(user__review_groups=OuterRef("owner_group_id")))
    return Q(~acts) & (Q(owner_group__is_first_owner=True) | Q(~somebody))


def matching(items: QuerySet[ReviewItem], filters: QueueFilters, user: User) -> QuerySet[ReviewItem]:
    """Those of a list that the filters beside the tab ask for."""
    wanted = Q()
    for column, values in (
        ("attempt__state__in", filters.states),
        ("reason__in", filters.reasons),
        ("attempt__tool__in", filters.tools),
        ("tenant__slug__in", filters.tenants),
    ):
        if values:
            wanted &= Q(**{column: values})
    return _saying(items.filter(wanted & _owned_by(filters.owner, user)), filters.text)


def _owned_by(owner: str, user: User) -> Q:
    if not owner:
        return Q()
    if owner == "me":
        return Q(owner=user)
    if owner == "none":
        return unowned()
    if owner.startswith("#"):
        return Q(owner_group__name=owner.removeprefix("#"))
    return Q(owner__username=owner)


def _saying(items: QuerySet[ReviewItem], text: str) -> QuerySet[ReviewItem]:
    """In the key, or in the arguments: the sentence is made of those. Where those hold what is hidden by
    now, in the key alone."""
    words = text.replace("\x00", "").strip()
    if not words:
        return items
    in_arguments = Q(attempt__args__icontains=words) & rules_of(items).well_masked()
    return items.filter(Q(operation__operation_key__icontains=words) | in_arguments)
