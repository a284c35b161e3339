"""Agents and their keys: who answers for each, when it was last seen, what its keys may and were refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, Q

from ledger.models import AccessChange, Agent, ApiKey, Refusal, Tenant, User
from ledger.transactions import database_clock
from review.agents import agent_in, newest_key, why_no_key
from review.door import right_needed
from review.people import people_of
from review.queries.access import ChangeLine, lines_of
from review.queries.charge import Charge, in_charge
from review.queries.delivery_values import PressView

REFUSALS_OF = timedelta(days=30)


@dataclass(frozen=True)
class AgentRow:
    """One agent in a line. `last_seen_at`: when one of its keys was last used, to about a minute."""

    agent_id: int
    name: str
    is_active: bool
    owner: str
    owner_active: bool
    live_keys: int
    last_seen_at: datetime | None


@dataclass(frozen=True)
class AgentsPage:
    """The agents of one tenant, by name."""

    charge: Charge
    rows: tuple[AgentRow, ...]
    as_of: datetime


@dataclass(frozen=True)
class KeyView:
    """One key; nobody can show its secret. `refused`: problem type → how many intents of the last 30 days."""

    key_id: str
    status: str  # live, expired, revoked
    verbs: tuple[str, ...]
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    refused: tuple[tuple[str, int], ...]
    presses: tuple[PressView, ...]

    def press(self, kind: str) -> PressView | None:
        return next((press for press in self.presses if press.kind == kind), None)


@dataclass(frozen=True)
class AgentPage:
    """One agent with its keys, newest first, and what was done to them."""

    charge: Charge
    row: AgentRow
    created_at: datetime
    keys: tuple[KeyView, ...]
    newest: str
    changes: tuple[ChangeLine, ...]
    changes_total: int
    presses: tuple[PressView, ...]
    as_of: datetime

    def press(self, kind: str) -> PressView | None:
        return next((press for press in self.presses if press.kind == kind), None)

    def key(self, key_id: str) -> KeyView | None:
        return next((key for key in self.keys if key.key_id == key_id), None)


def agents_page(user: User, slug: str = "") -> AgentsPage:
    """Raises `NotVisible` and `NotPermitted`. One query for all agents."""
    charge, now = in_charge(user, slug), database_clock()
    return AgentsPage(charge, tuple(_rows(charge.tenant, now)), now)


def agent_page(user: User, slug: str, agent_id: int) -> AgentPage:
    """Raises `NotVisible` and `NotPermitted`. Queries do not grow with keys."""
    charge, now = in_charge(user, slug), database_clock()
    agent = agent_in(charge.tenant, agent_id)
    no_right = "" if charge.rights.administer else right_needed(charge.tenant, "administer")
    changes = AccessChange.objects.filter(agent=agent)
    (row,) = _rows(charge.tenant, now, agent_id=agent.pk)
    return AgentPage(
        charge=charge,
        row=row,
        created_at=agent.created_at,
        keys=_keys(agent, no_right, now),
        newest=newest_key(agent),
        changes=lines_of(changes),
        changes_total=changes.count(),
        presses=_presses(agent, no_right),
        as_of=now,
    )


def possible_owners(tenant: Tenant) -> tuple[str, ...]:
    """User names of who may answer for an agent here: whoever sees the work."""
    return tuple(person.get_username() for person in people_of(tenant).seers)


def _rows(tenant: Tenant, now: datetime, agent_id: int | None = None) -> Iterable[AgentRow]:
    live = Q(keys__revoked_at=None, keys__expires_at__gt=now)
    found = Agent.objects.filter(tenant=tenant, **({} if agent_id is None else {"pk": agent_id}))
    counted = found.select_related("owner").annotate(
        live_keys=Count("keys", filter=live), last_seen_at=Max("keys__last_used_at")
    )
    for agent in counted.order_by("name"):
        read = vars(agent)
        yield AgentRow(
            agent_id=agent.pk,
            name=agent.name,
            is_active=agent.is_active,
            owner=agent.owner.get_username(),
            owner_active=agent.owner.is_active,
            live_keys=read["live_keys"],
            last_seen_at=read["last_seen_at"],
        )


def _keys(agent: Agent, no_right: str, now: datetime) -> tuple[KeyView, ...]:
    keys = list(agent.keys.order_by("-pk"))
    refused = _refused(agent.tenant_id, [key.key_id for key in keys], now - REFUSALS_OF)
    no_key = no_right or why_no_key(agent)
    return tuple(_key(key, refused.get(key.key_id, ()), no_right, no_key, now) for key in keys)


def _refused(
    tenant_id: int, key_ids: list[str], since: datetime
) -> Mapping[str, tuple[tuple[str, int], ...]]:
    found = Refusal.objects.filter(tenant_id=tenant_id, key_id__in=key_ids, at__gte=since)
    counted = found.order_by("reason").values_list("key_id", "reason").annotate(n=Count("pk"))
    by_key: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for key_id, reason, number in counted:
        by_key[key_id].append((reason, number))
    return {key_id: tuple(reasons) for key_id, reasons in by_key.items()}


def _key(
    key: ApiKey, refused: tuple[tuple[str, int], ...], no_right: str, no_key: str, now: datetime
) -> KeyView:
    over = "revoked" if key.revoked_at else "expired" if key.expires_at <= now else ""
    revoke = PressView(
        "revoke",
        "Revoke the key",
        "It gets no leave from now on; for 7 days its reports are evidence only, and settle nothing.",
        no_right,
    )
    rotate = PressView(
        "rotate",
        "Rotate the key",
        "Makes a new key with the same scopes and verbs and shows it once; this one retires when the overlap "
        "you choose is over.",
        no_key,
    )
    presses = {"revoked": (), "expired": (revoke,), "": (rotate, revoke)}[over]
    return KeyView(
        key_id=key.key_id,
        status=over or "live",
        verbs=tuple(key.verbs),
        scopes=tuple(key.scopes),
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        last_used_at=key.last_used_at,
        refused=refused,
        presses=presses,
    )


def _presses(agent: Agent, no_right: str) -> tuple[PressView, ...]:
    return (
        PressView(
            "new-key",
            "Make a key",
            "Makes a key with the scopes and verbs you choose and shows it once.",
            no_right or why_no_key(agent),
        ),
        PressView(
            "give",
            "Give it to another owner",
            "They answer for it and may not approve what it asks: votes of theirs for it are void.",
            no_right,
        ),
        _switch(agent, no_right),
    )


def _switch(agent: Agent, no_right: str) -> PressView:
    if agent.is_active:
        says = (
            f"All keys of {agent.name} are refused: no intents, no leave, for what waits to be sent as well. "
            f"What it sent is still found out, and what it reports is still a fact."
        )
        return PressView("switch-off", "Switch off", says, no_right)
    says = f"Its keys work again: {agent.name} asks for leave, and what waited for it may be sent."
    return PressView("switch-on", "Switch on", says, no_right)
