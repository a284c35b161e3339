"""The rules of ownership of one tenant: in force or of old, what each decides about now, who can be named."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ledger.models import ReviewGroup, Tenant, User
from ledger.rules.vocabulary import Effect, ReviewReason
from ledger.transactions import database_clock
from review.absences import Away, away_in
from review.door import NotVisible, administrators, enter_tenant, require_administrator
from review.models import OwnershipEntry, OwnershipVersion
from review.owners import able_among, deciders, rule_of_entry
from review.queries.ownership_moves import DryRun, dry_run
from review.queries.page import AssigneeView
from review.queries.tenants import tenant_view, tenants_of
from review.queries.values import TenantView
from review.queries.words import EFFECT_WORDS, REASON_WORDS
from review.reach import REACH_WORDS, Reach
from review.rights import Rights

MOST_VERSIONS = 50
ANY = "any"


@dataclass(frozen=True)
class RuleView:
    """One rule. `owner` is a user name or `#team`; `able`: whom it names can act now, `away`: how long
    they are away. `open_items`: how many it decides about now; None for rules not in force."""

    place: int  # from 1
    tool_glob: str
    reason: str
    reason_words: str
    effect: str
    effect_words: str
    owner: str
    able: bool
    away: Away | None
    destination_glob: str
    open_items: int | None


@dataclass(frozen=True)
class VersionView:
    """One set of rules as it was saved."""

    number: int
    saved_by: str
    saved_at: datetime
    why: str
    reach_words: str


@dataclass(frozen=True)
class OwnershipPage:
    """The rules of one tenant. `shown` is the version they are of, None before the first one; `now`: what the
    rules in force would do to open items, None for older ones."""

    tenant: TenantView
    tenants: tuple[TenantView, ...]
    rights: Rights
    administrators: tuple[str, ...]
    first_team: str
    rules: tuple[RuleView, ...]
    shown: VersionView | None
    newest: int
    now: DryRun | None
    versions: tuple[VersionView, ...]
    as_of: datetime


def ownership_page(user: User, slug: str, *, version: int | None = None) -> OwnershipPage:
    """The rules in force, or those of a version. Raises `NotVisible`."""
    tenant, rights = enter_tenant(user, slug)
    versions = _versions(tenant)
    newest = versions[0].version if versions else 0
    shown = _shown(tenant, newest if version is None else version)
    entries = _entries(shown)
    is_in_force = shown is None or shown.version == newest
    now = dry_run(tenant.pk, [rule_of_entry(entry) for entry in entries]) if is_in_force else None
    return OwnershipPage(
        tenant=tenant_view(tenant),
        tenants=tenants_of(user),
        rights=rights,
        administrators=administrators(tenant),
        first_team=ReviewGroup.objects.get(tenant=tenant, is_first_owner=True).name,
        rules=_rules(tenant, entries, now),
        shown=_version_view(shown) if shown else None,
        newest=newest,
        now=now,
        versions=tuple(_version_view(saved) for saved in versions),
        as_of=database_clock(),
    )


def rules_to_edit(user: User, slug: str) -> tuple[OwnershipPage, tuple[AssigneeView, ...]]:
    """The rules in force, and whom a rule may name: teams, and people who decide there. Raises `NotVisible`,
    and `NotPermitted` without the right to administer."""
    tenant, rights = enter_tenant(user, slug)
    require_administrator(tenant, rights)
    teams = ReviewGroup.objects.filter(tenant=tenant).order_by("-is_first_owner", "name")
    people = deciders(tenant.pk).order_by("username")
    return ownership_page(user, slug), (
        *(AssigneeView(f"#{name}", f"Team {name}") for name in teams.values_list("name", flat=True)),
        *(AssigneeView(person.get_username(), person.get_username()) for person in people),
    )


def _versions(tenant: Tenant) -> list[OwnershipVersion]:
    saved = OwnershipVersion.objects.filter(tenant=tenant).select_related("saved_by")
    return list(saved.order_by("-version")[:MOST_VERSIONS])


def _shown(tenant: Tenant, number: int) -> OwnershipVersion | None:
    if not number:
        return None
    saved = OwnershipVersion.objects.filter(tenant=tenant, version=number).select_related("saved_by").first()
    if saved is None:
        raise NotVisible(str(number))
    return saved


def _entries(shown: OwnershipVersion | None) -> list[OwnershipEntry]:
    return list(shown.entries.select_related("team", "person").order_by("place")) if shown else []


def _rules(tenant: Tenant, entries: list[OwnershipEntry], now: DryRun | None) -> tuple[RuleView, ...]:
    rules = [rule_of_entry(entry) for entry in entries]
    able, away = able_among(tenant.pk, rules), away_in(tenant)
    return tuple(
        RuleView(
            place=entry.place + 1,
            tool_glob=entry.tool_glob,
            reason=entry.reason,
            reason_words=REASON_WORDS[ReviewReason(entry.reason)] if entry.reason else ANY,
            effect=entry.effect,
            effect_words=EFFECT_WORDS[Effect(entry.effect)] if entry.effect else ANY,
            owner=_owner(entry),
            able=able.includes(rule),
            away=away.get(entry.person_id or 0),
            destination_glob=entry.destination_glob,
            open_items=now.matched[entry.place] if now and not entry.destination_glob else None,
        )
        for entry, rule in zip(entries, rules, strict=True)
    )


def _owner(entry: OwnershipEntry) -> str:
    if entry.person is not None:
        return entry.person.get_username()
    return f"#{entry.team.name}" if entry.team else ""


def _version_view(saved: OwnershipVersion) -> VersionView:
    return VersionView(
        number=saved.version,
        saved_by=saved.saved_by.get_username(),
        saved_at=saved.saved_at,
        why=saved.why,
        reach_words=REACH_WORDS[Reach(saved.reach)],
    )
