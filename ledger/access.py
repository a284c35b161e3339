"""Who may act for a tenant: agents and their keys, and the record of every change of access.

Each verb writes its change and its line of the record in the caller's transaction.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ledger.models import AccessChange, Agent, ApiKey, Tenant, User
from ledger.rules.keys import format_api_key, secret_hash
from ledger.rules.vocabulary import AccessChangeKind
from ledger.transactions import database_clock, require_transaction

_ID_BYTES = 8
_SECRET_BYTES = 32


@dataclass(frozen=True)
class Grant:
    """What a new key may do, and for how many days."""

    scopes: list[str]
    verbs: list[str]
    days: float


def note_access(
    kind: AccessChangeKind,
    *,
    tenant_id: int,
    by: User | None,
    why: str = "",
    person: User | None = None,
    agent: Agent | None = None,
    **data: Any,
) -> AccessChange:
    """One line of the record. `by` None: somebody at the machine itself. `data` is JSON."""
    require_transaction()
    return AccessChange.objects.create(
        tenant_id=tenant_id,
        kind=kind,
        by=by,
        person=person,
        agent=agent,
        data=data,
        why=why,
        at=database_clock(),
    )


def create_agent(
    *, tenant: Tenant, name: str, owner: User, by: User | None, why: str = ""
) -> tuple[Agent, bool]:
    """The tenant's agent of this name, and whether it is new: one that exists keeps its owner."""
    agent, is_new = Agent.objects.get_or_create(tenant=tenant, name=name, defaults={"owner": owner})
    if is_new:
        kind, name = AccessChangeKind.AGENT_CREATED, owner.get_username()
        note_access(kind, tenant_id=tenant.pk, by=by, why=why, agent=agent, owner=name)
    return agent, is_new


def give_agent(agent: Agent, *, to: User, by: User | None, why: str) -> None:
    """Another person answers for this agent from now on, and may not approve what it asks."""
    before = agent.owner.get_username()
    agent.owner = to
    agent.save(update_fields=["owner"])
    note_access(
        AccessChangeKind.AGENT_GIVEN,
        tenant_id=agent.tenant_id,
        by=by,
        why=why,
        agent=agent,
        person=to,
        before=before,
        owner=to.get_username(),
    )


def switch_agent(agent: Agent, *, on: bool, by: User | None, why: str) -> bool:
    """Off: none of its keys gets leave or asks anything; what it reports is still a fact. False: it is so
    already."""
    if not Agent.objects.filter(pk=agent.pk, is_active=not on).update(is_active=on):
        return False
    agent.is_active = on
    kind = AccessChangeKind.AGENT_SWITCHED_ON if on else AccessChangeKind.AGENT_SWITCHED_OFF
    note_access(kind, tenant_id=agent.tenant_id, by=by, why=why, agent=agent)
    return True


def create_key(*, agent: Agent, grant: Grant, by: User | None = None, why: str = "") -> tuple[str, ApiKey]:
    """Store a new key of `agent`. The text is returned and kept nowhere."""
    text, key = _new_key(agent, grant, database_clock() + timedelta(days=grant.days))
    _note_key(AccessChangeKind.KEY_CREATED, key, by=by, why=why, scopes=key.scopes, verbs=key.verbs)
    return text, key


def rotate_key(
    key: ApiKey, *, days: float, overlap: timedelta, now: datetime, by: User | None, why: str
) -> tuple[str, ApiKey]:
    """A new key with the scopes and verbs of this one, which retires when the overlap is over, or earlier
    where its own time ends. A retired key may still report on what was dispatched with it."""
    grant = Grant(scopes=list(key.scopes), verbs=list(key.verbs), days=days)
    text, new = _new_key(key.agent, grant, now + timedelta(days=days))
    key.expires_at = min(key.expires_at, now + overlap)
    key.save(update_fields=["expires_at"])
    said = {"replaces": key.key_id, "retires_at": key.expires_at.isoformat()}
    _note_key(AccessChangeKind.KEY_ROTATED, new, by=by, why=why, **said)
    return text, new


def revoke_key(key: ApiKey, *, by: User | None, why: str = "") -> bool:
    """From now on its reports are evidence only, and it gets no leave. False: it was revoked already, and the
    first time stands."""
    revoked_at = database_clock()
    if not ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=revoked_at):
        return False
    key.revoked_at = revoked_at
    _note_key(AccessChangeKind.KEY_REVOKED, key, by=by, why=why)
    return True


def _new_key(agent: Agent, grant: Grant, expires_at: datetime) -> tuple[str, ApiKey]:
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    key = ApiKey.objects.create(
        tenant_id=agent.tenant_id,
        key_id=secrets.token_hex(_ID_BYTES),
        agent=agent,
        secret_hash=secret_hash(secret),
        verbs=grant.verbs,
        scopes=grant.scopes,
        expires_at=expires_at,
    )
    return format_api_key(key.key_id, secret), key


def _note_key(kind: AccessChangeKind, key: ApiKey, *, by: User | None, why: str, **data: Any) -> None:
    said = {"key": key.key_id, "expires_at": key.expires_at.isoformat(), **data}
    note_access(kind, tenant_id=key.tenant_id, by=by, why=why, agent=key.agent, **said)
