"""A small cast for the API: a tenant, its people, an agent, and keys that may do this or that."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ledger.access import Grant
from ledger.models import Agent, ApiKey, Event, Operation, ReviewGroup, Run, Tenant, User
from ledger.policies import publish_policy
from ledger.transactions import database_clock, durable
from tests.support import make

GRANT = Grant(scopes=["tool:*", "target:acct-*"], verbs=["ingest", "read", "ack", "admin"], days=1)

POLICY: dict[str, Any] = {
    "default": "refuse",
    "tools": {
        "email.*": {"effect": "message", "idempotent": True, "key_ttl_s": 3600},
        "pay.held": {"effect": "payment", "review": "always"},
        "pay.card": {"effect": "payment", "target": "/account"},
        "note.add": {"effect": "write", "max_attempts": 1},
        "own.send": {"effect": "message", "executor": "ledger", "provider": "mailer"},
    },
}


@dataclass
class Cast:
    """One tenant and everybody around it."""

    tenant: Tenant
    owner: User
    reviewer: User
    agent: Agent

    def key(self, *, agent: Agent | None = None, **changed: Any) -> tuple[str, ApiKey]:
        """A key's text and row. Like most keys, but for what is `changed`."""
        text, row = make.key_of(agent or self.agent, GRANT)
        for name, value in changed.items():
            setattr(row, name, value)
        row.save()
        return text, row

    def revoked_key(self, *, days_ago: float) -> str:
        return self.key(revoked_at=database_clock() - timedelta(days=days_ago))[0]

    def expired_key(self) -> str:
        return self.key(expires_at=database_clock() - timedelta(seconds=1))[0]

    def publish(self, document: dict[str, Any]) -> None:
        durable(lambda: publish_policy(tenant=self.tenant, document=document, by=self.owner))


def new_cast() -> Cast:
    """A tenant nobody else uses, with the policy above in force."""
    name = f"t-{secrets.token_hex(4)}"
    tenant = make.tenant(name)
    owner = User.objects.create(username=f"{name}-owner", email=f"{name}-owner@example.org")
    reviewer = User.objects.create(username=f"{name}-reviewer", email=f"{name}-reviewer@example.org")
    ReviewGroup.objects.get(tenant=tenant).members.add(reviewer)
    cast = Cast(tenant, owner, reviewer, make.agent(tenant, owner, "robot"))
    cast.publish(POLICY)
    return cast


def stored() -> dict[str, int]:
    """How many rows there are of everything an API call could store, refusals aside."""
    return {model.__name__: model.objects.count() for model in (Operation, Event, Run)}
