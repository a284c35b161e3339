"""What administrators say about agents, their keys, and what agents may do at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from ledger.access import Grant
from ledger.models import AccessChange, Agent, PolicySnapshot
from ledger.rules.canonical import canonical_bytes
from ledger.rules.vocabulary import AccessChangeKind as C
from review import agents, decisions, policies
from tests.crash.decisions.access import somebody
from tests.crash.decisions.case import SLUG, WHY, About, Case, held, item, who
from tests.support import make
from tests.support.cast import Cast

GRANT = Grant(scopes=["tool:*"], verbs=["ingest"], days=9)


def an_agent(people: Cast, number: int) -> About:
    agent = make.agent(people.tenant, people.owner, f"agent-{number}")
    key = make.key(agent)
    return {"agent": agent.pk, "key": key.key_id, "name": f"new-{number}", "newest": key.key_id}


def an_agent_with_votes(people: Cast, number: int) -> About:
    """Whoever is to own it has approved what it asked."""
    about, voter = an_agent(people, number), somebody(people, number)
    key = Agent.objects.get(pk=about["agent"]).keys.select_related("agent__owner", "agent__tenant").get()
    decisions.approve(voter, item(make.held(key))["item"], why=WHY)
    return {**about, "owner": voter.username}


def a_policy(people: Cast, number: int) -> About:
    decisions.approve(people.approver, held(people, number)["item"], why=WHY)
    tools = {**make.TOOLS, make.DEPLOY: {**make.TOOLS[make.DEPLOY], "approval_ttl_s": 600 + number}}
    typed = canonical_bytes({"default": "refuse", "tools": tools}).decode()
    base = PolicySnapshot.objects.filter(tenant=people.tenant).latest("version").version
    return {"typed": typed, "base": base}


def of_agent(kind: C) -> Callable[[About], int]:
    return lambda a: AccessChange.objects.filter(kind=kind, agent_id=a["agent"], why=WHY).count()


def one_switched_off(people: Cast, number: int) -> About:
    about = an_agent(people, number)
    agents.switch(people.admin, SLUG, about["agent"], on=False, why=WHY)
    return about


AGENTS: Mapping[str, Case] = {
    "create an agent": Case(
        an_agent,
        lambda a: agents.create(who("admin"), SLUG, name=a["name"], owner="owner", why=WHY),
        lambda a: Agent.objects.filter(name=a["name"]).count(),
    ),
    "give an agent": Case(
        an_agent_with_votes,
        lambda a: agents.give(who("admin"), SLUG, a["agent"], owner=a["owner"], why=WHY),
        of_agent(C.AGENT_GIVEN),
    ),
    "make a key": Case(
        an_agent,
        lambda a: agents.create_key(who("admin"), SLUG, a["agent"], grant=GRANT, newest=a["newest"], why=WHY),
        of_agent(C.KEY_CREATED),
    ),
    "rotate a key": Case(
        an_agent,
        lambda a: agents.rotate_key(
            who("admin"),
            SLUG,
            a["agent"],
            a["key"],
            days=9,
            overlap=timedelta(0),
            newest=a["newest"],
            why=WHY,
        ),
        of_agent(C.KEY_ROTATED),
    ),
    "revoke a key": Case(
        an_agent,
        lambda a: agents.revoke_key(who("admin"), SLUG, a["agent"], a["key"], why=WHY),
        of_agent(C.KEY_REVOKED),
    ),
    "publish a policy": Case(
        a_policy,
        lambda a: policies.publish(who("admin"), SLUG, typed=a["typed"], base=a["base"], why=WHY),
        lambda a: PolicySnapshot.objects.filter(version=a["base"] + 1, tenant__slug=SLUG).count(),
    ),
    "switch an agent off": Case(
        an_agent,
        lambda a: agents.switch(who("admin"), SLUG, a["agent"], on=False, why=WHY),
        of_agent(C.AGENT_SWITCHED_OFF),
    ),
    "switch an agent on": Case(
        one_switched_off,
        lambda a: agents.switch(who("admin"), SLUG, a["agent"], on=True, why=WHY),
        of_agent(C.AGENT_SWITCHED_ON),
    ),
}
