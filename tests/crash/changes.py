"""What administrators change, and what people do beside items, each as one press for another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial

from ledger import deliveries as ledger_deliveries
from ledger.access import Grant
from ledger.lifecycle import OutcomeReport, Told, take_outcome
from ledger.models import (
    AccessChange,
    Agent,
    Decision,
    Destination,
    Event,
    ParkedFact,
    ParkedNote,
    PolicySnapshot,
    ReviewGroup,
    ReviewItem,
    User,
)
from ledger.rules.canonical import canonical_bytes
from ledger.rules.vocabulary import AccessChangeKind, DecisionKind, EventKind
from ledger.transactions import durable
from review import (
    access,
    agents,
    decisions,
    deliveries,
    destinations,
    ownership,
    ownership_rules,
    parked,
    policies,
    presses,
    teams,
)
from review.destinations import Wanted
from review.models import ApprovalScope, OwnershipVersion, PressNonce, TeamChange
from review.ownership_rules import TypedRule
from review.queries.destinations import newest_secret
from review.reach import Reach
from review.roles import Role
from tests.crash.decisions import WHY, About, Case, by_two, held, item, sent, who
from tests.support import make, told
from tests.support.cast import Cast, person

SLUG = "acme"
ADDRESS = "https://93.184.216.34/hooks"
C = AccessChangeKind


def somebody(people: Cast, number: int, *roles: Role) -> User:
    return person(f"somebody-{number}", people.tenant, *(roles or (Role.APPROVER,)))


def a_person(people: Cast, number: int) -> About:
    return {"person": somebody(people, number).pk}


def a_viewer(people: Cast, number: int) -> About:
    return {"person": somebody(people, number, Role.VIEWER).pk}


def an_operator(people: Cast, number: int) -> About:
    return {"person": somebody(people, number, Role.OPERATOR).pk}


def a_busy_person(people: Cast, number: int) -> About:
    """With a claim, an item, a waiting vote and an approval that others would lose with the right."""
    busy = somebody(people, number)
    ownership.claim(busy, sent(people, number)["item"])
    ownership.assign(people.admin, sent(people, number)["item"], to=busy.username, why=WHY)
    decisions.approve(busy, held(people, number)["item"], why=WHY)
    decisions.approve(busy, by_two(people, number)["item"], why=WHY)
    return {"person": busy.pk}


def one_with_a_scope(people: Cast, number: int) -> About:
    about = a_busy_person(people, number)
    scope = ApprovalScope.objects.get(person_permissions__user_id=about["person"])
    return {**about, "scope": scope.pk}


def one_switched_off(people: Cast, number: int) -> About:
    off = somebody(people, number)
    access.switch_off(people.admin, SLUG, off.pk, why=WHY)
    return {"person": off.pk}


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


def changed(kind: AccessChangeKind) -> Callable[[About], int]:
    return lambda a: AccessChange.objects.filter(kind=kind, person_id=a["person"], why=WHY).count()


def of_agent(kind: AccessChangeKind) -> Callable[[About], int]:
    return lambda a: AccessChange.objects.filter(kind=kind, agent_id=a["agent"], why=WHY).count()


GRANT = Grant(scopes=["tool:*"], verbs=["ingest"], days=9)

ACCESS: Mapping[str, Case] = {
    "give a role": Case(
        a_viewer,
        lambda a: access.give_role(who("admin"), SLUG, a["person"], role=Role.OPERATOR, why=WHY),
        changed(C.ROLE_GIVEN),
    ),
    "take a role": Case(
        a_busy_person,
        lambda a: access.take_role_away(who("admin"), SLUG, a["person"], role=Role.VIEWER, why=WHY),
        changed(C.ROLE_TAKEN),
    ),
    "take a scope": Case(
        one_with_a_scope,
        lambda a: access.take_scope_away(who("admin"), SLUG, a["person"], scope_id=a["scope"], why=WHY),
        changed(C.SCOPE_TAKEN),
    ),
    "switch off": Case(
        a_busy_person,
        lambda a: access.switch_off(who("admin"), SLUG, a["person"], why=WHY),
        changed(C.SWITCHED_OFF),
    ),
    "switch on": Case(
        one_switched_off,
        lambda a: access.switch_on(who("admin"), SLUG, a["person"], why=WHY),
        changed(C.SWITCHED_ON),
    ),
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
}


def rules(_: Cast, number: int) -> About:
    based_on = OwnershipVersion.objects.filter(tenant__slug=SLUG).count()
    owner = ("operator", "approver")[number % 2]
    return {"based_on": based_on, "owner": owner, "name": f"team-{number}"}


def rules_that_move(people: Cast, number: int) -> About:
    """Saved, and not asked yet about the one item that is open."""
    for earlier in ReviewItem.objects.filter(tenant=people.tenant, closed_at=None):
        decisions.confirm_did_not_happen(people.operator, earlier.pk, why=WHY)
    about = {**sent(people, number), **rules(people, number)}
    _save_rules(about)
    return about


def a_team(people: Cast, number: int) -> About:
    team_id = teams.create(people.admin, SLUG, name=f"team-{number}")
    teams.add_member(people.admin, team_id, username="approver")
    return {"team": team_id, "name": f"renamed-{number}"}


def a_delivery(people: Cast, number: int) -> About:
    if not Destination.objects.filter(tenant=people.tenant).exists():
        told.destination(people.tenant)
    delivery = told.delivery_of(make.confirmed(people.key, result_ref=f"res_{number}"))
    return {
        "delivery": delivery.pk,
        "operation": delivery.operation_id,
        "destination": delivery.destination_id,
        "secret": newest_secret(delivery.destination_id),
        "name": f"dest-{number}",
    }


def a_dead_letter(people: Cast, number: int) -> About:
    about = a_delivery(people, number)
    give_up = partial(
        ledger_deliveries.give_up, delivery_id=about["delivery"], by=people.operator, why="down"
    )
    durable(give_up)
    return about


def a_parked_fact(people: Cast, number: int) -> About:
    said = OutcomeReport(worker_id="worker-1", outcome="succeeded", result_ref=f"res_{number}")
    durable(lambda: take_outcome(key=people.key, told=Told("", f"lost:{number}"), report=said))
    return {"fact": ParkedFact.objects.latest("parked_at").pk}


def a_form(people: Cast, number: int) -> About:
    about = held(people, number)
    return {**about, "press": presses.new_press(people.approver, about["item"], "digest")}


def _save_rules(about: About) -> int:
    typed = [TypedRule("*", owner=about["owner"])]
    return ownership_rules.save_rules(
        who("admin"), SLUG, typed, based_on=about["based_on"], reach=Reach.ALL, why=WHY
    )


def _told(kind: EventKind) -> Callable[[About], int]:
    return lambda a: Event.objects.filter(kind=kind, operation_id=a["operation"], body__contains=WHY).count()


SETUP: Mapping[str, Case] = {
    "save rules": Case(
        rules,
        _save_rules,
        lambda a: OwnershipVersion.objects.filter(version=a["based_on"] + 1).count(),
    ),
    "apply rules": Case(
        rules_that_move,
        lambda _: ownership_rules.apply_rules(who("admin"), SLUG, reach=Reach.ALL, why=WHY),
        lambda a: Decision.objects.filter(item_id=a["item"], kind=DecisionKind.ASSIGN, why=WHY).count(),
    ),
    "create a team": Case(
        rules,
        lambda a: teams.create(who("admin"), SLUG, name=a["name"]),
        lambda a: ReviewGroup.objects.filter(name=a["name"]).count(),
    ),
    "rename a team": Case(
        a_team,
        lambda a: teams.rename(who("admin"), a["team"], name=a["name"]),
        lambda a: TeamChange.objects.filter(team_id=a["team"], what__startswith="renamed").count(),
    ),
    "add a member": Case(
        a_team,
        lambda a: teams.add_member(who("admin"), a["team"], username="operator"),
        lambda a: TeamChange.objects.filter(team_id=a["team"], what="operator added").count(),
    ),
    "take a member out": Case(
        a_team,
        lambda a: teams.remove_member(who("admin"), a["team"], username="approver"),
        lambda a: TeamChange.objects.filter(team_id=a["team"], what="approver taken out").count(),
    ),
    "redeliver": Case(
        a_dead_letter,
        lambda a: deliveries.redeliver(who("operator"), a["delivery"], why=WHY),
        _told(EventKind.DELIVERY_REDELIVERED),
    ),
    "give up": Case(
        a_delivery,
        lambda a: deliveries.give_up(who("operator"), a["delivery"], why=WHY),
        _told(EventKind.DELIVERY_DEAD_LETTERED),
    ),
    "dismiss a parked fact": Case(
        a_parked_fact,
        lambda a: parked.dismiss(who("operator"), a["fact"], why=WHY),
        lambda a: ParkedNote.objects.filter(fact_id=a["fact"], why=WHY).count(),
    ),
    "add a destination": Case(
        a_delivery,
        lambda a: destinations.add(who("admin"), Wanted(SLUG, a["name"], ADDRESS, "response")),
        lambda a: Destination.objects.filter(name=a["name"]).count(),
    ),
    "rotate a secret": Case(
        a_delivery,
        lambda a: destinations.rotate_secret(
            who("admin"), a["destination"], overlap=timedelta(hours=1), replaces=a["secret"]
        ),
        lambda a: int(newest_secret(a["destination"]) != a["secret"]),
    ),
    "use a press": Case(
        a_form,
        lambda a: presses.use_press(who("approver"), a["press"], a["item"], "digest"),
        lambda a: 1 - PressNonce.objects.filter(item_id=a["item"]).count(),
    ),
}
