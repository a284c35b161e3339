"""`manage.py create_agent_key`: a key for an agent, shown once."""

from argparse import ArgumentParser
from typing import Any

from ledger.access import Grant, create_agent, create_key
from ledger.management.command import (
    Answer,
    Exit,
    LedgerCommand,
    Stopped,
    check_usage,
    tenant_named,
    user_named,
)
from ledger.models import Agent, ApiKey, Tenant, User
from ledger.rules.names import MOST_KEY_DAYS, name_problem, scopes_problem, verbs_problem
from ledger.transactions import durable


class Command(LedgerCommand):
    help = "Create a key for an agent (and the agent, where it is new). The key is shown this once."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--agent", required=True, metavar="NAME")
        parser.add_argument("--owner", required=True, metavar="USERNAME", help="who answers for the agent")
        parser.add_argument(
            "--scope",
            required=True,
            action="extend",
            nargs="+",
            metavar="SCOPE",
            help="tool:GLOB or target:GLOB",
        )
        parser.add_argument("--verbs", default="ingest,read", help="some of ingest,read,ack,admin")
        parser.add_argument("--days", type=int, default=90, help="how long it is valid (default 90)")

    def answer(self, *, agent: str, owner: str, days: int, **options: Any) -> Answer:
        grant = Grant(options["scope"], [verb.strip() for verb in options["verbs"].split(",")], days)
        check_usage(name_problem(agent), f"Agent {agent!r}")
        check_usage(scopes_problem(grant.scopes), "Scope")
        check_usage(verbs_problem(grant.verbs), "Verbs")
        check_usage(_days_problem(days), "Days")
        tenant = tenant_named(options["tenant"])
        person = user_named(owner, tenant=tenant)
        text, key = durable(lambda: _create(tenant, agent, person, grant))
        return Answer(_told(text, key), _data(text, key))


def _create(tenant: Tenant, name: str, owner: User, grant: Grant) -> tuple[str, ApiKey]:
    agent, _ = create_agent(tenant=tenant, name=name, owner=owner, by=None)
    _check_same_owner(agent, owner)
    return create_key(agent=agent, grant=grant)


def _check_same_owner(agent: Agent, owner: User) -> None:
    """A key never changes hands by the way: who answers for the agent may not approve what it asks."""
    if agent.owner != owner:
        raise Stopped(
            Exit.CONFLICT,
            f"Agent {agent.name!r} is owned by {agent.owner.get_username()!r}; no key was created.",
            mend=f"Name its owner: --owner {agent.owner.get_username()}",
        )
    if not agent.is_active or not owner.is_active:
        whose = "The agent" if not agent.is_active else "Its owner"
        raise Stopped(Exit.REFUSED, f"{whose} is not active; no key was created.")


def _days_problem(days: int) -> str | None:
    return None if 1 <= days <= MOST_KEY_DAYS else f"a key is valid for 1–{MOST_KEY_DAYS} days"


def _told(text: str, key: ApiKey) -> str:
    return (
        f"{text}\n"
        f"This is the only time the key is shown. It speaks for {key.agent.name} until "
        f"{key.expires_at:%Y-%m-%d %H:%M} UTC.\n"
        f"To end it: python manage.py revoke_agent_key {key.key_id}"
    )


def _data(text: str, key: ApiKey) -> dict[str, object]:
    return {
        "key": text,
        "key_id": key.key_id,
        "tenant": key.tenant.slug,
        "agent": key.agent.name,
        "owner": key.agent.owner.get_username(),
        "scopes": key.scopes,
        "verbs": key.verbs,
        "expires_at": key.expires_at.isoformat(),
    }
