"""One tenant per schedule: its people, its agent with a key, its rules and its providers."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from django.contrib.auth.models import Permission

from ledger.access import Grant, create_key
from ledger.deliveries import add_destination
from ledger.events import SYSTEM
from ledger.management.commands.create_tenant import create
from ledger.models import Agent, ApiKey, Destination, Provider, ReviewGroup, Tenant, User
from ledger.policies import current_snapshot, publish_policy
from ledger.rules.keys import correlation_id
from ledger.transactions import database_clock, durable
from review.models import ApprovalScope, ApprovalScopePermission, TenantPermission
from review.roles import PERMISSIONS, Role
from tests.crash.suite.plan import Plan, PlannedOperation

CALM = {"dispatch_timeout_s": 30, "approval_ttl_s": 600}
DECIDING = ("first", "second", "third")
PEOPLE = {"owner": Role.APPROVER, **dict.fromkeys(DECIDING, Role.APPROVER), "admin": Role.ADMIN}


@dataclass(frozen=True)
class World:
    """What the lane needs to know of a schedule's tenant; `consumers`: by their paths, each a
    `consumer.Place`."""

    tenant_id: int
    slug: str
    key: str
    correlation_ids: tuple[str, ...]
    consumers: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def operation_key(number: int) -> str:
    return f"operation:{number}"


def tool(number: int) -> str:
    return f"tool.t{number}"


def args_of(plan: Plan, number: int) -> dict[str, Any]:
    return {"amount": 100 + number, "to": f"somebody-{plan.seed}"}


def prepare(plan: Plan, provider_url: str, consumer_url: str) -> World:
    """Make the tenant of this plan, in one transaction."""
    return durable(lambda: _prepare(plan, provider_url, consumer_url))


def _prepare(plan: Plan, provider_url: str, consumer_url: str) -> World:
    slug = f"s{plan.seed}-{secrets.token_hex(4)}"
    tenant = create(slug=slug, name=slug)
    people = _people(tenant)
    agent = Agent.objects.create(tenant=tenant, name="bot", owner=people["owner"])
    key = create_key(agent=agent, grant=Grant(["tool:*", "target:*"], ["ingest", "read"], 1))[0]
    publish_policy(tenant=tenant, document=policy_of(plan), by=people["admin"])
    marks = tuple(correlation_id(str(tenant.pk), operation_key(n)) for n in range(len(plan.operations)))
    consumers = dict(_consumers(tenant, people["owner"], plan, consumer_url)) if plan.destinations else {}
    world = World(tenant.pk, slug, key, marks, consumers)
    for number, operation in enumerate(plan.operations):
        if not operation.late_provider:
            add_provider(world, operation, number, provider_url)
    return world


def _consumers(tenant: Tenant, owner: User, plan: Plan, url: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each destination's path, and its consumer: with a key of their own they acknowledge."""
    agent = Agent.objects.create(tenant=tenant, name="consumer", owner=owner)
    key = create_key(agent=agent, grant=Grant([], ["ack"], 1))[0]
    for number, planned in enumerate(plan.destinations):
        place = f"{tenant.slug}/{number}"
        added, secret = add_destination(
            tenant_id=tenant.pk, name=f"c{number}", url=f"{url}/{place}", ack=planned.ack, actor=SYSTEM
        )
        Destination.objects.filter(pk=added.pk).update(ack_deadline_s=plan.ack_deadline_s)
        yield (
            place,
            {
                "number": number,
                "secret": secret,
                "ack": planned.ack,
                "key": key,
                "answers": planned.answers,
            },
        )


def _people(tenant: Tenant) -> dict[str, User]:
    """Everybody with their role, in few statements: what `review.roles.grant_role` does one by one."""
    people = {name: User(username=f"{name}-{tenant.slug}", password="!") for name in PEOPLE}
    User.objects.bulk_create(people.values())
    known = _permissions()
    TenantPermission.objects.bulk_create(
        TenantPermission(user=people[name], content_object=tenant, permission_id=known[codename])
        for name, role in PEOPLE.items()
        for codename in PERMISSIONS[role]
    )
    scope = ApprovalScope.objects.create(tenant=tenant)
    approvers = [people[name] for name, role in PEOPLE.items() if role is Role.APPROVER]
    ApprovalScopePermission.objects.bulk_create(
        ApprovalScopePermission(user=person, content_object=scope, permission_id=known["approve_sends"])
        for person in approvers
    )
    ReviewGroup.objects.get(tenant=tenant, is_first_owner=True).members.set(approvers)
    return people


@cache
def _permissions() -> dict[str, int]:
    return dict(Permission.objects.values_list("codename", "pk"))


def policy_of(plan: Plan, **changed: Any) -> dict[str, Any]:
    tools = {tool(number): {**o.rule, **changed} for number, o in enumerate(plan.operations)}
    return {"default": "refuse", "tools": tools}


def add_provider(world: World, operation: PlannedOperation, number: int, url: str) -> None:
    """Store how this operation's provider is asked, and how the ledger sends through it."""
    name = operation.rule.get("provider")
    if name:
        config = configuration(url, world.correlation_ids[number])
        Provider.objects.get_or_create(
            tenant_id=world.tenant_id, name=name, defaults={"adapter": "http", "config": config}
        )


def configuration(url: str, mark: str) -> Mapping[str, Any]:
    """The provider simulator, as the `http` adapter is told of it."""
    return {
        "request": {"url": f"{url}/things?correlation_id={{correlation_id}}"},
        "matches": "/data",
        "match_where": {"/metadata/correlation_id": "{correlation_id}"},
        "next_page": {"pointer": "/next"},
        "max_pages": 4,
        "absent_status": [404],
        "reference": "/id",
        "state": {
            "pointer": "/status",
            "done": ["succeeded"],
            "in_progress": ["pending"],
            "failed": ["failed"],
            "reversed": ["refunded"],
        },
        "content": {"/amount": "/amount", "/to": "/to"},
        "canary": {"request": {"url": f"{url}/canary/{mark}"}, "pointer": "/id", "value": "canary"},
        "rate_per_s": 1000,
        "send": {
            "url": f"{url}/things",
            "headers": {"Idempotency-Key": "{idempotency_key}"},
            "body": {
                "amount": "{args/amount}",
                "to": "{args/to}",
                "metadata": {"correlation_id": "{correlation_id}"},
            },
            "no_effect": {"422": "declined"},
        },
    }


def happen(plan: Plan, world: World, what: str, number: int, provider_url: str) -> None:
    """Something from outside comes over the tenant."""
    tenant = Tenant.objects.get(pk=world.tenant_id)
    keys = ApiKey.objects.filter(tenant=tenant, agent__name="bot", revoked_at=None)
    if what == "revoke":
        keys.update(revoked_at=database_clock())
    elif what == "narrow":
        keys.update(scopes=["tool:other.*"])
    elif what == "suspend":
        Tenant.objects.filter(pk=tenant.pk).update(suspended_at=database_clock())
    elif what == "publish":
        durable(lambda: publish_policy(tenant=tenant, document=policy_of(plan, review="always"), by=None))
    elif what == "calm":
        durable(lambda: _calm(tenant))
    elif what == "add_provider":
        add_provider(world, plan.operations[number], number, provider_url)


def _calm(tenant: Tenant) -> None:
    """From now on nobody is in a hurry: the policy in force, with long leases and long-lived approvals."""
    snapshot = current_snapshot(tenant.pk)
    if snapshot is not None:
        tools = {name: {**rule, **CALM} for name, rule in snapshot.document["tools"].items()}
        publish_policy(tenant=tenant, document={**snapshot.document, "tools": tools}, by=None)
