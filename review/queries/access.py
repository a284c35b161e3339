"""Who may do what in a tenant: its people, one of them, what is on record; asked as the write path asks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from ledger.lifecycle import items_in_hand, votes_standing
from ledger.models import AccessChange, Agent, ReviewGroup, ReviewItem, Tenant, User
from ledger.policies import rule_as_shown
from ledger.queries.arguments import sentence_of
from ledger.transactions import database_clock, one_reading
from review.absences import Away, away_in
from review.access import person_in
from review.accounts import open_link_of
from review.door import administrators, right_needed
from review.models import ApprovalScope
from review.people import people_of, who_is_known_in
from review.queries.access_presses import presses_of
from review.queries.access_words import ACCESS_WORDS, RIGHT_LABELS
from review.queries.charge import Charge, in_charge
from review.queries.delivery_values import PressView
from review.queries.marked import Segment, marked_text
from review.queries.tenants import tenant_view, tenants_of
from review.queries.values import TenantView
from review.queries.words import plain
from review.rights import NONE, Rights, rights_of, stored_rights
from review.roles import Role, roles_of

NEWEST = 100
SHOWN = 50


@dataclass(frozen=True)
class PersonRow:
    """One person in a line. `in_hand`: open items they own or have claimed."""

    user_id: int
    username: str
    name: str
    is_active: bool
    roles: tuple[Role, ...]
    scopes: tuple[str, ...]
    in_hand: int
    last_login: datetime | None
    away: Away | None


@dataclass(frozen=True)
class ChangeLine:
    """One line of the record of access. `by` is empty for somebody at the machine itself."""

    at: datetime
    by: str
    about: str
    words: str
    data: tuple[tuple[str, str], ...]
    why: tuple[Segment, ...]


@dataclass(frozen=True)
class AccessPage:
    """The people of one tenant by name, and the newest 100 changes."""

    charge: Charge
    people: tuple[PersonRow, ...]
    changes: tuple[ChangeLine, ...]
    changes_total: int
    as_of: datetime


@dataclass(frozen=True)
class RightView:
    """One right: held or not, within what, and why not."""

    label: str
    held: bool
    within: tuple[str, ...] = ()
    why_not: str = ""


@dataclass(frozen=True)
class TenantRights:
    """What one person may do in one tenant, and who gives the rest. `duties`: what they may not approve
    although they have the right; `away`: rules give them nothing before it ends; `owned`: how many open items
    they own."""

    tenant: TenantView
    roles: tuple[Role, ...]
    rights: tuple[RightView, ...]
    granted_by: tuple[str, ...]
    groups: tuple[str, ...]
    duties: tuple[str, ...]
    away: Away | None
    owned: int

    @property
    def decides(self) -> bool:
        return Role.OPERATOR in self.roles


@dataclass(frozen=True)
class InHand:
    """One open item of a person, or one vote of theirs that stands."""

    item_id: str
    sentence: str
    how: str


@dataclass(frozen=True)
class LinkView:
    """A link that was handed to somebody and not used yet; nobody can show its code."""

    made_by: str
    expires_at: datetime


@dataclass(frozen=True)
class PersonPage:
    """One person in one tenant. `stored`: the roles they have while they are switched on; `link`: the open
    link with which they may set their password, and `has_password`: whether they ever did."""

    charge: Charge
    user_id: int
    username: str
    name: str
    has_password: bool
    link: LinkView | None
    is_active: bool
    is_superuser: bool
    here: TenantRights
    scopes: tuple[ApprovalScope, ...]
    stored: tuple[Role, ...]
    in_hand: tuple[InHand, ...]
    in_hand_total: int
    votes: tuple[InHand, ...]
    votes_total: int
    agents: tuple[str, ...]
    changes: tuple[ChangeLine, ...]
    changes_total: int
    presses: tuple[PressView, ...]
    as_of: datetime

    def press(self, kind: str) -> PressView | None:
        return next((press for press in self.presses if press.kind == kind), None)


@dataclass(frozen=True)
class OwnRights:
    """What one person may do, in every tenant they see."""

    tenants: tuple[TenantRights, ...]
    is_superuser: bool
    as_of: datetime


def access_page(user: User, slug: str = "") -> AccessPage:
    """Raises `NotVisible` and `NotPermitted`. Queries do not grow with people."""
    charge = in_charge(user, slug)
    changes = AccessChange.objects.filter(tenant=charge.tenant)
    return AccessPage(
        charge=charge,
        people=_people(charge.tenant),
        changes=lines_of(changes),
        changes_total=changes.count(),
        as_of=database_clock(),
    )


def person_page(user: User, slug: str, person_id: int) -> PersonPage:
    """Raises `NotVisible` and `NotPermitted`. Queries do not grow with what the person has in hand."""
    with one_reading():
        return _person_page(user, slug, person_id)


def _person_page(user: User, slug: str, person_id: int) -> PersonPage:
    charge = in_charge(user, slug)
    tenant, person = charge.tenant, person_in(charge.tenant, person_id)
    stored = stored_rights(person, tenant)
    items, votes = items_in_hand(person, tenant.pk), votes_standing(person, tenant.pk)
    changes = AccessChange.objects.filter(tenant=tenant, person=person)
    items_total, votes_total = items.count(), votes.count()
    return PersonPage(
        charge=charge,
        user_id=person.pk,
        username=person.get_username(),
        name=person.get_full_name(),
        has_password=person.has_usable_password(),
        link=_link(person),
        is_active=person.is_active,
        is_superuser=person.is_superuser,
        here=rights_in(person, tenant),
        scopes=stored.scopes,
        stored=roles_of(stored),
        in_hand=tuple(_item(item, person) for item in items.select_related(*_ATTEMPT)[:SHOWN]),
        in_hand_total=items_total,
        votes=_votes(person, tenant),
        votes_total=votes_total,
        agents=_agents_of(person, tenant),
        changes=lines_of(changes),
        changes_total=changes.count(),
        presses=presses_of(user, person, tenant, charge.rights, items=items_total, votes=votes_total),
        as_of=database_clock(),
    )


def own_rights(user: User) -> OwnRights:
    """What this person may do, by tenant; none where they see nothing."""
    seen = {tenant.id for tenant in tenants_of(user)}
    found = Tenant.objects.filter(pk__in=seen).order_by("name", "pk")
    return OwnRights(tuple(rights_in(user, tenant) for tenant in found), user.is_superuser, database_clock())


def rights_in(person: User, tenant: Tenant) -> TenantRights:
    """What this person may do in this tenant now, and who gives the rest."""
    rights = rights_of(person, tenant)
    groups = ReviewGroup.objects.filter(tenant=tenant, members=person).order_by("name")
    return TenantRights(
        tenant=tenant_view(tenant),
        roles=roles_of(rights),
        rights=_rights(rights, tenant),
        granted_by=administrators(tenant),
        groups=tuple(groups.values_list("name", flat=True)),
        duties=tuple(f"what the agent {name} asks, which is theirs" for name in _agents_of(person, tenant)),
        away=away_in(tenant).get(person.pk),
        owned=ReviewItem.objects.filter(tenant=tenant, owner=person, closed_at=None).count(),
    )


def lines_of(changes: QuerySet[AccessChange]) -> tuple[ChangeLine, ...]:
    """The newest 100, newest first."""
    newest = changes.select_related("by", "person", "agent").order_by("-at", "-pk")[:NEWEST]
    return tuple(_line(change) for change in newest)


def _people(tenant: Tenant) -> tuple[PersonRow, ...]:
    people, away = people_of(tenant), away_in(tenant)
    somebody = Q(owner__isnull=False) | Q(claimed_by__isnull=False)
    items = ReviewItem.objects.filter(somebody, tenant=tenant, closed_at=None)
    in_hand: Counter[int | None] = Counter()
    for owner, claimed in items.values_list("owner_id", "claimed_by_id"):
        in_hand.update({owner, claimed})
    return tuple(
        _person(
            person,
            people.rights_of(person) if person.is_active else NONE,
            in_hand[person.pk],
            away.get(person.pk),
        )
        for person in who_is_known_in(tenant)
    )


def _person(person: User, rights: Rights, in_hand: int, away: Away | None) -> PersonRow:
    return PersonRow(
        user_id=person.pk,
        username=person.get_username(),
        name=person.get_full_name(),
        is_active=person.is_active,
        roles=roles_of(rights),
        scopes=tuple(str(scope) for scope in rights.scopes),
        in_hand=in_hand,
        last_login=person.last_login,
        away=away,
    )


def _link(person: User) -> LinkView | None:
    link = open_link_of(person)
    return LinkView(link.made_by.get_username(), link.expires_at) if link else None


def _rights(rights: Rights, tenant: Tenant) -> tuple[RightView, ...]:
    held = {
        "view_work": rights.view,
        "decide_work": rights.decide,
        "approve_sends": rights.decide and bool(rights.scopes),
        "administer": rights.administer,
        "audit": rights.audit,
    }
    within = tuple(str(scope) for scope in rights.scopes)
    return tuple(
        RightView(
            label=label,
            held=held[codename],
            within=within if codename == "approve_sends" and held[codename] else (),
            why_not="" if held[codename] else right_needed(tenant, codename),
        )
        for codename, label in RIGHT_LABELS.items()
    )


_ATTEMPT = ("attempt__policy", "attempt__operation")


def _item(item: ReviewItem, person: User) -> InHand:
    owned, claimed = item.owner_id == person.pk, item.claimed_by_id == person.pk
    how = "owned and claimed" if owned and claimed else "owned" if owned else "claimed"
    return InHand(item.pk, _sentence(item), how)


def _votes(person: User, tenant: Tenant) -> tuple[InHand, ...]:
    votes = votes_standing(person, tenant.pk).select_related("decision__item__attempt__policy", "decision")
    return tuple(
        InHand(
            vote.decision.item_id,
            _sentence(vote.decision.item),
            "in a waiting approval" if vote.approval is not None else "waits for others",
        )
        for vote in votes.select_related("approval").order_by("-at")[:SHOWN]
    )


def _sentence(item: ReviewItem) -> str:
    return sentence_of(item.attempt, rule_as_shown(item.attempt))


def _agents_of(person: User, tenant: Tenant) -> tuple[str, ...]:
    owned = Agent.objects.filter(tenant=tenant, owner=person).order_by("name")
    return tuple(owned.values_list("name", flat=True))


def _line(change: AccessChange) -> ChangeLine:
    about = change.agent.name if change.agent else change.person.get_username() if change.person else ""
    data = {name: value for name, value in change.data.items() if value not in (None, "", [], 0)}
    return ChangeLine(
        at=change.at,
        by=change.by.get_username() if change.by else "",
        about=about,
        words=ACCESS_WORDS.get(change.kind) or plain(change.kind).capitalize(),
        data=tuple((plain(name), _shown(name, value)) for name, value in sorted(data.items())),
        why=marked_text(change.why),
    )


def _shown(name: str, value: object) -> str:
    if name.endswith("_at"):
        return datetime.fromisoformat(str(value)).strftime("%Y-%m-%d %H:%M UTC")
    return ", ".join(str(each) for each in value) if isinstance(value, list) else str(value)
