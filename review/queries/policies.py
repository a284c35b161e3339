"""Versions of a tenant's policy: who published each, why, what it says, and how two of them differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger.models import AccessChange, PolicySnapshot, Tenant, User
from ledger.policies import current_snapshot
from ledger.reconciliation.advice import Advice, advice_on_policy
from ledger.rules.vocabulary import AccessChangeKind
from ledger.transactions import database_clock
from review.door import NotVisible
from review.policies import DryRun
from review.queries.arguments import changes_between
from review.queries.charge import Charge, in_charge
from review.queries.marked import Segment, marked_text
from review.queries.page import FieldChange

NEWEST = 100
MOST_CHANGES = 200


@dataclass(frozen=True)
class VersionRow:
    """One version in a line. `by` is empty for somebody at the machine itself who named nobody."""

    version: int
    published_at: datetime
    by: str
    why: tuple[Segment, ...]
    rules: int
    hash: str
    in_force: bool


@dataclass(frozen=True)
class PoliciesPage:
    """The newest 100 versions, newest first."""

    charge: Charge
    rows: tuple[VersionRow, ...]
    total: int
    as_of: datetime


@dataclass(frozen=True)
class PolicyPage:
    """One version whole, and how it differs from another one (None: there is none to compare with)."""

    charge: Charge
    row: VersionRow
    document: tuple[Segment, ...]
    against: int | None
    others: tuple[int, ...]
    changes: tuple[FieldChange, ...]
    changes_total: int
    advice: tuple[Advice, ...]
    as_of: datetime


def policies_page(user: User, slug: str = "") -> PoliciesPage:
    """Raises `NotVisible` and `NotPermitted`."""
    charge = in_charge(user, slug)
    snapshots = PolicySnapshot.objects.filter(tenant=charge.tenant).select_related("published_by")
    newest, current = list(snapshots.order_by("-version")[:NEWEST]), current_snapshot(charge.tenant.pk)
    reasons = _reasons(charge.tenant)
    return PoliciesPage(
        charge=charge,
        rows=tuple(_row(snapshot, reasons, current) for snapshot in newest),
        total=snapshots.count(),
        as_of=database_clock(),
    )


def policy_page(user: User, slug: str, version: int, *, against: int | None = None) -> PolicyPage:
    """Compared with the version before it where `against` names none. Raises `NotVisible` and
    `NotPermitted`."""
    charge = in_charge(user, slug)
    snapshot = _version(charge.tenant, version)
    versions = PolicySnapshot.objects.filter(tenant=charge.tenant).exclude(version=version)
    before = _before(charge.tenant, version, against)
    changes = changes_between(before.document, snapshot.document) if before else ()
    return PolicyPage(
        charge=charge,
        row=_row(snapshot, _reasons(charge.tenant), current_snapshot(charge.tenant.pk)),
        document=marked_text(pretty(snapshot.document)),
        against=before.version if before else None,
        others=tuple(versions.order_by("-version").values_list("version", flat=True)[:NEWEST]),
        changes=changes[:MOST_CHANGES],
        changes_total=len(changes),
        advice=tuple(advice_on_policy(snapshot)),
        as_of=database_clock(),
    )


def document_in_force(tenant: Tenant) -> str:
    """The document to begin an edit with; a first one where none was published."""
    current = current_snapshot(tenant.pk)
    return pretty(current.document if current else {"default": "refuse", "tools": {}})


def changes_of(run: DryRun) -> tuple[FieldChange, ...]:
    """How the document of a dry run differs from the one in force."""
    return changes_between(run.before, run.document)


def pretty(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True)


def _version(tenant: Tenant, version: int) -> PolicySnapshot:
    found = PolicySnapshot.objects.select_related("published_by", "tenant").filter(tenant=tenant)
    snapshot = found.filter(version=version).first()
    if snapshot is None:
        raise NotVisible(str(version))
    return snapshot


def _before(tenant: Tenant, version: int, against: int | None) -> PolicySnapshot | None:
    if against is not None:
        return _version(tenant, against)
    earlier = PolicySnapshot.objects.filter(tenant=tenant, version__lt=version)
    return earlier.order_by("-version").first()


def _reasons(tenant: Tenant) -> Mapping[int, str]:
    """Version → why it was published, for those published from the desk."""
    published = AccessChange.objects.filter(tenant=tenant, kind=AccessChangeKind.POLICY_PUBLISHED)
    return {line.data["version"]: line.why for line in published.order_by("-at")[:NEWEST]}


def _row(snapshot: PolicySnapshot, reasons: Mapping[int, str], current: PolicySnapshot | None) -> VersionRow:
    return VersionRow(
        version=snapshot.version,
        published_at=snapshot.published_at,
        by=snapshot.published_by.get_username() if snapshot.published_by else "",
        why=marked_text(reasons.get(snapshot.version, "")),
        rules=len(snapshot.document.get("tools", {})),
        hash=snapshot.content_hash,
        in_force=current is not None and current.version == snapshot.version,
    )
