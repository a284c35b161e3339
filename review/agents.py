"""What an administrator does with agents and keys. Each is one transaction, with its line in the record.

Each raises `NotVisible`, `NotPermitted` and `AgentRefused` (the message is written for a person).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from ledger import access as ledger_access
from ledger.access import Grant
from ledger.models import Agent, ApiKey, Tenant, User
from ledger.rules.names import MOST_KEY_DAYS, name_problem, scopes_problem, verbs_problem
from ledger.transactions import database_clock
from review.access import as_administrator, end_votes_in_conflict
from review.answers import Refused
from review.door import NotVisible
from review.rights import may_view

T = TypeVar("T")


class AgentRefused(Refused):
    """Of what is done to an agent or a key."""


@dataclass(frozen=True)
class NewKey:
    """A new key and its text, which nobody can show again."""

    key_id: str
    text: str


def create(by: User, slug: str, *, name: str, owner: str, why: str) -> int:
    """A new agent without a key; its id. `owner` is a user name."""
    _check("name", name_problem(name))

    def work(tenant: Tenant) -> int:
        person = _owner(tenant, owner)
        agent, is_new = ledger_access.create_agent(tenant=tenant, name=name, owner=person, by=by, why=why)
        if not is_new:
            raise AgentRefused(f"{tenant.name} has an agent of this name already.", field="name")
        return int(agent.pk)

    return as_administrator(by, slug, work)


def give(by: User, slug: str, agent_id: int, *, owner: str, why: str) -> None:
    """Somebody else answers for it. Votes of theirs for what it asks are void: nobody approves their own."""

    def work(agent: Agent) -> None:
        person = _owner(agent.tenant, owner)
        if person == agent.owner:
            raise AgentRefused(f"{owner} owns it already.", field="owner")
        end_votes_in_conflict(
            by,
            person,
            agent.tenant,
            why=why,
            conflict=lambda attempt: attempt.agent_id == agent.pk,
        )
        ledger_access.give_agent(agent, to=person, by=by, why=why)

    _with_agent(by, slug, agent_id, work)


def switch(by: User, slug: str, agent_id: int, *, on: bool, why: str) -> None:
    """Off: none of its keys gets leave or asks for anything; what it sent is still found out, and what it
    reports is still a fact. On: everything as before, and nothing that was refused meanwhile is made good."""

    def work(agent: Agent) -> None:
        if not ledger_access.switch_agent(agent, on=on, by=by, why=why):
            raise AgentRefused(f"It is switched {'on' if on else 'off'} already.")

    _with_agent(by, slug, agent_id, work)


def create_key(by: User, slug: str, agent_id: int, *, grant: Grant, newest: str, why: str) -> NewKey:
    """`newest`: the key this person saw as the newest, so that no press counts twice."""
    _check("scopes", scopes_problem(grant.scopes))
    _check("verbs", verbs_problem(grant.verbs))
    _check_days(grant.days)

    def work(agent: Agent) -> NewKey:
        _check_active(agent)
        _check_newest(agent, newest)
        text, key = ledger_access.create_key(agent=agent, grant=grant, by=by, why=why)
        return NewKey(key.key_id, text)

    return _with_agent(by, slug, agent_id, work)


def rotate_key(
    by: User,
    slug: str,
    agent_id: int,
    key_id: str,
    *,
    days: int,
    overlap: timedelta,
    newest: str,
    why: str,
) -> NewKey:
    """A new key with the scopes and verbs of this one, which retires when the overlap is over."""
    _check_days(days)

    def work(agent: Agent) -> NewKey:
        _check_active(agent)
        _check_newest(agent, newest)
        key, now = _key(agent, key_id), database_clock()
        if key.revoked_at is not None or key.expires_at <= now:
            raise AgentRefused("This key is over: make a new one.")
        text, new = ledger_access.rotate_key(key, days=days, overlap=overlap, now=now, by=by, why=why)
        return NewKey(new.key_id, text)

    return _with_agent(by, slug, agent_id, work)


def revoke_key(by: User, slug: str, agent_id: int, key_id: str, *, why: str) -> None:
    """It gets no leave from now on; for 7 days its reports are evidence only."""

    def work(agent: Agent) -> None:
        if not ledger_access.revoke_key(_key(agent, key_id), by=by, why=why):
            raise AgentRefused("It is revoked already.")

    _with_agent(by, slug, agent_id, work)


def agent_in(tenant: Tenant, agent_id: int) -> Agent:
    """Raises `NotVisible`."""
    agent = Agent.objects.select_related("owner", "tenant").filter(tenant=tenant, pk=agent_id).first()
    if agent is None:
        raise NotVisible(str(agent_id))
    return agent


def newest_key(agent: Agent) -> str:
    """The id of the key made last; empty where there is none."""
    return agent.keys.order_by("-pk").values_list("key_id", flat=True).first() or ""


def why_no_key(agent: Agent) -> str:
    """Why this agent gets no new key; empty where it may."""
    if not agent.is_active:
        return "The agent is switched off."
    return "" if agent.owner.is_active else "Its owner is switched off: give it to somebody else first."


def _with_agent(by: User, slug: str, agent_id: int, work: Callable[[Agent], T]) -> T:
    return as_administrator(by, slug, lambda tenant: work(agent_in(tenant, agent_id)))


def _owner(tenant: Tenant, username: str) -> User:
    person = User.objects.filter(username=username).first()
    if person is None or not may_view(person, tenant):
        raise AgentRefused(f"Nobody of the user name {username} sees work of {tenant.name}.", field="owner")
    return person


def _key(agent: Agent, key_id: str) -> ApiKey:
    key = ApiKey.objects.select_related("agent").filter(agent=agent, key_id=key_id).first()
    if key is None:
        raise NotVisible(key_id)
    return key


def _check_active(agent: Agent) -> None:
    problem = why_no_key(agent)
    if problem:
        raise AgentRefused(problem)


def _check_newest(agent: Agent, newest: str) -> None:
    if newest_key(agent) != newest:
        raise AgentRefused("Its keys changed since this page was read; nothing was made.")


def _check_days(days: float) -> None:
    _check("days", None if 1 <= days <= MOST_KEY_DAYS else f"a key is valid for 1–{MOST_KEY_DAYS} days")


def _check(field: str, problem: str | None) -> None:
    if problem:
        raise AgentRefused(f"{problem[:1].upper()}{problem[1:]}.", field=field)
