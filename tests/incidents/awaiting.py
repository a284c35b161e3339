"""Many attempts that nobody has heard from, of one tenant or of two, and a bad line to their provider."""

from __future__ import annotations

from ledger.models import ApiKey, Attempt, Provider, Tenant
from ledger.rules.keys import correlation_id
from ledger.rules.states import State
from tests.incidents.scene import ARGS, PAYMENT, RESOURCES, Scene, configuration
from tests.support import make
from tests.support.proxy import Proxy


def lost(scene: Scene, count: int, *, by: ApiKey | None = None) -> None:
    """So many payments that happened, and whose agent (this tenant's, or `by`) never heard."""
    key = by or scene.people.key
    for number in range(count):
        name = f"payment:{number}"
        metadata = {"correlation_id": correlation_id(str(key.tenant_id), name)}
        scene.sent_by_agents += 1
        scene.provider.send(RESOURCES[PAYMENT], {**ARGS[PAYMENT], "metadata": metadata})
        make.unknown(key, PAYMENT, args=ARGS[PAYMENT], operation_key=name)


def the_other_tenant_asks(scene: Scene, line: Proxy, **changed: object) -> ApiKey:
    """Its payments are looked up over this line; the key of an agent of its own."""
    people = scene.people
    Provider.objects.create(
        tenant=people.other_tenant,
        name=RESOURCES[PAYMENT],
        adapter="http",
        config=configuration(line.url, PAYMENT) | changed,
    )
    return make.key(make.agent(people.other_tenant, people.stranger))


def states(of: Tenant) -> set[str]:
    return set(Attempt.objects.filter(tenant=of, tool=PAYMENT).values_list("state", flat=True))


def unknown(of: Tenant) -> int:
    return Attempt.objects.filter(tenant=of, state=State.UNKNOWN).count()
