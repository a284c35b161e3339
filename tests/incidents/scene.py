"""The words of the scenarios, spoken to the real ledger: agents by its API, people by the desk, a provider
that counts its effects in a process of its own.

An agent that is killed says nothing more, so a test kills one by making no further call: after `recorded`
(K1), after `dispatched` (K2), after `sent` (K3). `tests/crash` kills the processes themselves.

`tests.incidents.aftermath.nothing_else_went_wrong` is asserted at the end of every scenario.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

import httpx
from django.apps import apps
from django.db.models import F, Q

from ledger.access import Grant
from ledger.models import Agent, Attempt, Event, Provider, Turn, User
from ledger.models.base import TenantRow
from ledger.reconciliation import reconcile_once, send_once, sweep_once
from ledger.rules.keys import correlation_id
from ledger.rules.states import State
from ledger.transactions import database_clock
from review import decisions
from review.queries import ActionView, ItemPage, QueueFilters, QueueRow, item_page, queue
from tests.support import make
from tests.support.api import Api, WebServer
from tests.support.cast import Cast
from tests.support.provider import ProviderProcess, asking, sending

Body = dict[str, Any]

PAYMENT, MAIL, NOTE, DEPLOY, OWN, LOOK = (
    "payment.create", "mail.send", "note.add", "deploy.run", "own.payment", "stock.look",
)  # fmt: skip

RULES: Mapping[str, Mapping[str, Any]] = {
    PAYMENT: {"effect": "payment", "idempotent": True, "key_ttl_s": 3600, "provider": "refunds"},
    MAIL: {"effect": "message", "provider": "messages"},
    NOTE: {"effect": "write"},
    DEPLOY: {"effect": "deployment", "review": "always", "approvals": 1, "provider": "deployments"},
    OWN: {
        "effect": "payment", "idempotent": True, "key_ttl_s": 3600, "provider": "refunds",
        "executor": "ledger",
    },
    LOOK: {"effect": "read"},
}  # fmt: skip
"""A payment whose provider honours keys, a mail whose provider does not, a note nobody can look up, a
deployment that a person sees first, a payment the ledger itself sends, and a look that changes nothing."""

ARGS: Mapping[str, Body] = {
    PAYMENT: {"amount": 40, "currency": "EUR"},
    MAIL: {"to": "ada@example.org"},
    NOTE: {"text": "remember"},
    DEPLOY: {"version": "2026.11"},
    OWN: {"amount": 70, "currency": "EUR"},
    LOOK: {"shelf": 3},
}
RESOURCES = {PAYMENT: "refunds", OWN: "refunds", MAIL: "messages", DEPLOY: "deployments", NOTE: "tickets"}

# Behaviours of the provider when something is sent to it, and when it is asked.
APPLY, APPLY_AND_DROP, DROP_BEFORE, ERROR_BEFORE = (
    "honest", "accept_then_drop", "drop_before", "server_error",
)  # fmt: skip
FOUND, NONE, MANY, OTHER_CONTENT, IN_PROGRESS, UNAVAILABLE = (
    "honest", "lag", "several", "other_content", "in_progress", "down",
)  # fmt: skip


def configuration(url: str, tool: str) -> Body:
    """How the ledger asks the provider about a tool's calls, and sends those that are its own to send."""
    resource = f"{url}/{RESOURCES[tool]}"
    return asking(resource, ARGS[tool]) | {"send": sending(resource, ARGS[tool])}


@dataclass
class Scene:
    """One tenant with an agent, its people and its provider; another tenant that must notice nothing."""

    people: Cast
    server: WebServer
    provider: ProviderProcess
    api: Api
    stranger: Api
    sent_by_agents: int = 0
    effects_before: int = 0
    posts_before: int = 0
    histories: dict[str, list[str]] = field(default_factory=dict)
    elsewhere: Mapping[str, object] = field(default_factory=dict)

    # --- the agent -----------------------------------------------------------------------------------------

    def intent(
        self, key: str = "k1", tool: str = PAYMENT, args: Body | None = None, **more: Any
    ) -> httpx.Response:
        """INTENT key=… args=… (H1 where no others are given)."""
        content = ARGS[tool] if args is None else args
        return self.api.post("/intents", operation_key=key, tool=tool, args=content, **more)

    def recorded(self, key: str = "k1", tool: str = PAYMENT, args: Body | None = None, **more: Any) -> Body:
        """An intent that was stored, whatever it waits for."""
        return _told(self.intent(key, tool, args, **more), 200, 201, 202)

    def dispatch(self, about: Body, *, worker: str = "w1", **more: Any) -> httpx.Response:
        """The agent asks for permission to call the tool."""
        asked = {"worker_id": worker, "leave_id": f"{worker}-1", "args_hash": about["args_hash"], **more}
        return self.api.post(f"/attempts/{about['attempt_id']}/dispatch", **asked)

    def dispatched(self, about: Body | str = "k1", *, worker: str = "w1", **more: Any) -> Body:
        """An attempt that has leave, by its intent or by its key."""
        intent = self.recorded(about, **more) if isinstance(about, str) else about
        return _told(self.dispatch(intent, worker=worker), 200)

    def send(self, leave: Body, how: str = APPLY) -> str | None:
        """The tool is called with exactly what leave returned; the provider's reference, None if dropped."""
        self.provider.set_mode(how, on="send", times=1)
        self.sent_by_agents += 1
        tool = Attempt.objects.get(pk=leave["attempt_id"]).tool
        body = {**leave["args"], "metadata": {"correlation_id": leave["correlation_id"]}}
        headers = {"Idempotency-Key": leave["idempotency_key"]}
        try:
            with httpx.Client(base_url=self.provider.url, trust_env=False, timeout=20) as wire:
                answer = wire.post(f"/{RESOURCES[tool]}", json=body, headers=headers)
        except httpx.TransportError:
            return None
        finally:
            self.provider.set_mode("honest")
        return str(answer.json()["id"]) if answer.is_success else None

    def sent(self, key: str = "k1", how: str = APPLY, **more: Any) -> tuple[Body, str | None]:
        """Leave, and the send that followed; nothing reported yet."""
        leave = self.dispatched(key, **more)
        return leave, self.send(leave, how)

    def report(self, about: Body, outcome: str, **said: Any) -> httpx.Response:
        """CONFIRMED is `succeeded` with a reference, FAILED(class) is `failed` with an error."""
        said = {"worker_id": "w1", "outcome": outcome, **said}
        return self.api.post(f"/attempts/{about['attempt_id']}/outcome", **said)

    def confirmed(self, key: str = "k1", **more: Any) -> Body:
        """Sent, applied and reported with its receipt."""
        leave, reference = self.sent(key, **more)
        return _told(self.report(leave, "succeeded", result_ref=reference), 200)

    def unknown(self, key: str = "k1", how: str = APPLY_AND_DROP, **more: Any) -> Body:
        """Sent, the answer lost, and the agent says so."""
        leave, _ = self.sent(key, how, **more)
        return _told(self.report(leave, "unknown", error={"class": "reset"}), 200)

    def accepted(self, about: Body, reference: str) -> httpx.Response:
        """ACCEPTED ref=…: the provider's own id of the request, no outcome."""
        said = {"worker_id": "w1", "provider_request_id": reference}
        return self.api.post(f"/attempts/{about['attempt_id']}/provider-request", **said)

    def cancel(self, about: Body) -> httpx.Response:
        return self.api.post(f"/operations/{about['operation_id']}/cancel", reason="not wanted any more")

    # --- the people ----------------------------------------------------------------------------------------

    def vote(self, person: User, about: Body) -> None:
        """One person's yes to a new send of this attempt."""
        item = make.item_of(self.attempt(about))
        decisions.approve(person, item.pk, why="checked with the customer")

    def approve(self, about: Body) -> None:
        """As many people say yes as the rule wants."""
        for person in (self.people.approver, self.people.second_approver):
            self.vote(person, about)
            if self.attempt(about).approvals.filter(used_at=None, voided_at=None).exists():
                return
        raise AssertionError("two people said yes and there is no approval")

    def listed(self) -> list[QueueRow]:
        """Everything open on the desk, as the operator sees it."""
        rows: list[QueueRow] = []
        page = queue(self.people.operator, QueueFilters())
        while True:
            rows += page.rows
            if page.next_cursor is None:
                return rows
            page = queue(self.people.operator, QueueFilters(cursor=page.next_cursor))

    def on_desk(self, about: Body) -> QueueRow:
        """The open question about this attempt."""
        return next(row for row in self.listed() if row.attempt_id == about["attempt_id"])

    def item_page(self, about: Body) -> ItemPage:
        """The page of this attempt's question, as the operator sees it."""
        return item_page(self.people.operator, make.item_of(self.attempt(about)).pk)

    def action(self, about: Body, kind: str) -> ActionView:
        """One button of that page, as the approver sees it."""
        page = item_page(self.people.approver, make.item_of(self.attempt(about)).pk)
        return next(action for action in page.actions if action.kind == kind)

    # --- time and recovery ---------------------------------------------------------------------------------

    def leases_run_out(self) -> None:
        """Whoever had leave is not heard from any more."""
        mine = Attempt.objects.filter(tenant=self.people.tenant, state=State.DISPATCHED)
        mine.update(lease_until=database_clock())
        sweep_once()

    def time_passes(self, seconds: float = 60) -> None:
        """All that waits has waited so much longer; what is to be checked is due."""
        span = timedelta(seconds=seconds)
        mine = Attempt.objects.filter(tenant=self.people.tenant)
        mine.filter(lease_ended_at__isnull=False).update(lease_ended_at=F("lease_ended_at") - span)
        mine.filter(last_negative_at__isnull=False).update(last_negative_at=F("last_negative_at") - span)
        mine.filter(send_again_at__isnull=False).update(send_again_at=F("send_again_at") - span)
        mine.filter(state=State.UNKNOWN).update(next_check_at=database_clock())
        Provider.objects.filter(probe_at__isnull=False).update(probe_at=database_clock())
        Turn.objects.update(free_at=F("free_at") - span)

    def recover(self) -> int:
        """One pass of everything that recovers by itself; how much it did."""
        swept, asked, sent = sweep_once(), reconcile_once(), send_once()
        return int(sum(asdict(swept).values())) + asked.looked_up + sent.sent

    def asks(self, what: str = FOUND) -> None:
        """The provider is asked once about all that is due, and answers like this."""
        self.provider.set_mode(what, on="look_up")
        self.recover()
        self.provider.set_mode("honest")

    def asks_until_settled(self, what: str = FOUND) -> None:
        """Asked again and again over the settle window, with the same kind of answer."""
        for _ in range(4):
            self.time_passes()
            self.asks(what)

    # --- what became of it ---------------------------------------------------------------------------------

    def attempt(self, about: Body) -> Attempt:
        return Attempt.objects.select_related("operation", "policy").get(pk=about["attempt_id"])

    def state(self, about: Body) -> str:
        return self.attempt(about).state

    def operation(self, about: Body) -> Body:
        """The operation as the API tells it."""
        return _told(self.api.get(f"/operations/{about['operation_id']}"), 200)

    def history(self, about: Body) -> list[str]:
        """The kinds of the events of an operation, oldest first, as the API tells them."""
        answer = self.api.get(f"/operations/{about['operation_id']}/events", limit=200)
        return [event["kind"] for event in _told(answer, 200)["events"]]

    def events(self, about: Body, kind: str) -> list[Body]:
        """What the events of this kind say."""
        found = Event.objects.filter(operation=about["operation_id"], kind=kind).order_by("sequence")
        return [event.data for event in found]

    def effects(self, key: str = "k1") -> int:
        """How often the provider really did what this operation is for."""
        return self.provider.effects(correlation_id(str(self.people.tenant.pk), key))

    def all_effects(self) -> int:
        """How often the provider really did anything in this scene."""
        return self.provider.total_effects() - self.effects_before


def opening(people: Cast, server: WebServer, provider: ProviderProcess) -> Scene:
    """Policies, providers and keys for both tenants, and a bystander's work under the same key."""
    provider.set_mode("honest")
    for tenant in (people.tenant, people.other_tenant):
        make.policy(tenant, tools=RULES)
    for tool in (PAYMENT, MAIL, DEPLOY):
        Provider.objects.create(
            tenant=people.tenant,
            name=RESOURCES[tool],
            adapter="http",
            config=configuration(provider.url, tool),
        )
    other = make.agent(people.other_tenant, people.stranger, "other-bot")
    scene = Scene(
        people,
        server,
        provider,
        api=Api(server.address, key_for(people.agent)),
        stranger=Api(server.address, key_for(other)),
        effects_before=provider.total_effects(),
        posts_before=len(provider.requests("POST")),
    )
    _told(scene.stranger.post("/intents", operation_key="k1", tool=NOTE, args=ARGS[NOTE]), 201)
    scene.elsewhere = rows(scene, theirs=True)
    return scene


def key_for(agent: Agent, *, scopes: Iterable[str] = ("tool:*", "target:*")) -> str:
    """The text of a new key of this agent."""
    grant = Grant(scopes=list(scopes), verbs=["ingest", "read", "ack"], days=1)
    return make.key_of(agent, grant)[0]


def _told(answer: httpx.Response, *statuses: int) -> Body:
    assert answer.status_code in statuses, answer.text
    body: Body = answer.json()
    return body


def rows(scene: Scene, *, theirs: bool = False) -> dict[str, object]:
    """Every row of every table that belongs to a tenant: this one's, or everybody else's."""
    tables = [model for model in apps.get_models() if issubclass(model, TenantRow)]
    tenant = Q(tenant=scene.people.tenant)
    wanted = ~tenant if theirs else tenant
    return {
        table.__name__: list(table._default_manager.filter(wanted).order_by("pk").values())
        for table in tables
    }
