"""The one door to a review item and every other row: its tenant's wall first, then the right asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import DateTimeField, Func, OuterRef

from ledger.models import ReviewGroup, ReviewItem, Tenant, User
from ledger.models.base import TenantRow
from review.models import Absence, TenantPermission
from review.people import People, people_of
from review.rights import NONE, Rights, hold_rights, rights_of

Row = TypeVar("Row", bound=TenantRow)

RIGHT_WORDS = {
    "view_work": "see the work",
    "decide_work": "decide work",
    "administer": "administer",
    "audit": "audit",
    "approve_sends": "approve sends of this tool and effect",
}


class NotVisible(Exception):
    """Unknown, of another tenant, or no right to know: the person asking cannot tell which. Always a 404."""


class NotPermitted(Exception):
    """The person sees the item but lacks a right; `granted_by` names who can give it."""

    def __init__(self, reason: str, *, granted_by: tuple[str, ...]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.granted_by = granted_by


@dataclass(frozen=True)
class Entry:
    """An item this person may see, what they may do with it, and the database's time when it was read.

    `groups` are the names of the tenant's review groups, `own_groups` of those this person is in.
    """

    item: ReviewItem
    tenant: Tenant
    rights: Rights
    now: datetime
    groups: tuple[str, ...]
    own_groups: tuple[str, ...]


def enter(user: User, item_id: str) -> Entry:
    """The item, if this person may see it. Raises `NotVisible`."""
    item = _item(user, item_id)
    return _entry(item, rights_of(user, item.tenant))


def enter_to_write(user: User, item_id: str) -> Entry:
    """The same, with rights in its tenant that stay as they are until the transaction ends."""
    entry = enter(user, item_id)
    hold_rights(entry.tenant)
    return replace(entry, rights=rights_of(user, entry.tenant))


def enter_tenant(user: User, slug: str) -> tuple[Tenant, Rights]:
    """The tenant of this slug, if this person may see its work. Raises `NotVisible`."""
    tenant = Tenant.objects.filter(slug=slug).first()
    rights = rights_of(user, tenant) if tenant is not None else NONE
    if tenant is None or not rights.view:
        raise NotVisible(slug)
    return tenant, rights


def enter_tenant_to_write(user: User, slug: str, *, to_change: bool = False) -> tuple[Tenant, Rights]:
    """The same, with rights that stay as they are until the transaction ends, or that nobody else changes."""
    hold_rights(enter_tenant(user, slug)[0], to_change=to_change)
    return enter_tenant(user, slug)


def enter_among(user: User, item_id: str) -> tuple[Entry, People]:
    """The same, with everybody of its tenant."""
    item = _item(user, item_id)
    people = people_of(item.tenant)
    return _entry(item, people.rights_of(user)), people


def enter_row(user: User, row: Row | None, row_id: str) -> tuple[Row, Rights]:
    """What was found under this id, if this person may see its tenant's work. Raises `NotVisible`."""
    rights = rights_of(user, row.tenant) if row is not None else NONE
    if row is None or not rights.view:
        raise NotVisible(row_id)
    return row, rights


def to_write(enter: Callable[[], tuple[Row, Rights]]) -> tuple[Row, Rights]:
    """What `enter` finds, with rights in its tenant that stay as they are until the transaction ends."""
    hold_rights(enter()[0].tenant)
    return enter()


def _item(user: User, item_id: str) -> ReviewItem:
    groups = ReviewGroup.objects.filter(tenant_id=OuterRef("tenant_id")).order_by("name")
    found = ReviewItem.objects.select_related(*_RELATED).annotate(
        read_at=ClockTimestamp(),
        groups=ArraySubquery(groups.values("name")),
        own_groups=ArraySubquery(groups.filter(members=user.pk).values("name")),
        owner_away_until=Absence.of_owner(),
    )
    # LIMIT would have PostgreSQL weigh far more plans for so many joins: ten times the work for one row.
    item = next(iter(found.filter(pk=item_id)), None)
    if item is None:
        raise NotVisible(item_id)
    item.operation = item.attempt.operation
    return item


def _entry(item: ReviewItem, rights: Rights) -> Entry:
    if not rights.view:
        raise NotVisible(item.pk)
    read = vars(item)
    return Entry(
        item=item,
        tenant=item.tenant,
        rights=rights,
        now=read["read_at"],
        groups=tuple(read["groups"]),
        own_groups=tuple(read["own_groups"]),
    )


class ClockTimestamp(Func):
    """The database's time now."""

    function = "clock_timestamp"
    output_field = DateTimeField()


_RELATED = (
    "tenant",
    "attempt__operation__run",
    "attempt__policy",
    "attempt__agent__owner",
    "attempt__agent__tenant",
    "attempt__requested_by",
    "attempt__arguments_by",
    "owner_group",
    "owner",
    "claimed_by",
)


def require_administrator(tenant: Tenant, rights: Rights) -> None:
    """Raise `NotPermitted` unless this person administers this tenant."""
    if not rights.administer:
        raise missing_right(tenant, "administer")


def require_decider(tenant: Tenant, rights: Rights) -> None:
    """Raise `NotPermitted` unless this person may decide work here."""
    if not rights.decide:
        raise missing_right(tenant, "decide_work")


def missing_right(
    tenant: Tenant, codename: str, *, granted_by: tuple[str, ...] | None = None
) -> NotPermitted:
    """The refusal that names the right and who can give it (looked up where not known yet)."""
    words = right_needed(tenant, codename)
    return NotPermitted(words, granted_by=administrators(tenant) if granted_by is None else granted_by)


def right_needed(tenant: Tenant, *codenames: str) -> str:
    """Which right is asked, in words; one of several is enough."""
    rights = " or to ".join(RIGHT_WORDS[codename] for codename in codenames)
    return f"You need the right to {rights} in {tenant.name}."


def administrators(tenant: Tenant) -> tuple[str, ...]:
    """User names of who may give rights in this tenant."""
    held = TenantPermission.objects.filter(
        content_object=tenant, permission__codename="administer", user__is_active=True
    )
    return tuple(held.order_by("user__username").values_list("user__username", flat=True))
