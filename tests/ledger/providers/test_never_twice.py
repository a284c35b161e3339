"""Money at a provider that keeps no idempotency keys: who repeats blindly pays twice, the ledger does not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest

from ledger import lifecycle
from ledger.lifecycle import LeaveGiven, LeaveProblem, LeaveRefused
from ledger.models import Attempt, LookUp, Provider, User
from ledger.reconciliation import reconcile_once
from ledger.reconciliation.asking import question_about
from ledger.rules.keys import correlation_id
from ledger.rules.states import State
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import Cast, cast
from tests.support.localstripe import LocalStripe, as_form, bearer
from tests.support.proxy import Proxy, down, dropped_after_sending, honest

pytestmark = pytest.mark.django_db

CHARGE, REFUND = "charge.create", "refund.create"
PAYMENT = {"effect": "payment", "provider": "stripe", "confirm": "receipt"}
LONG_AGO = timedelta(hours=1)
ROUNDS = 6


@dataclass
class Scene:
    """An agent with a key to Stripe, a ledger that may look there, and the line between agent and Stripe."""

    people: Cast
    stripe: LocalStripe
    line: Proxy
    card: str
    charge: str

    def args(self, tool: str, number: int) -> dict[str, Any]:
        if tool == CHARGE:
            return {"amount": 1000 + number, "currency": "eur", "source": self.card}
        return {"amount": 1 + number, "charge": self.charge}

    def send(self, attempt: Attempt) -> str:
        """What an agent does with its leave. Raises where no answer comes."""
        body = {**(attempt.args or {}), "metadata": {"correlation_id": correlation_of(attempt)}}
        headers = {**bearer(), "Idempotency-Key": attempt.idempotency_key}
        resource = "charges" if attempt.tool == CHARGE else "refunds"
        with httpx.Client(base_url=self.line.url, trust_env=False, headers=headers) as client:
            answer = client.post(f"/v1/{resource}", data=as_form(body)).raise_for_status()
        return str(answer.json()["id"])

    def effects(self, attempt: Attempt) -> list[str]:
        return self.stripe.effects(correlation_of(attempt))

    def post_again(self, attempt: Attempt) -> lifecycle.Standing:
        """What an agent does that was started again."""
        key = attempt.operation.operation_key
        again = make.intent_of(attempt.tool, args=attempt.args, operation_key=key)
        standing = make.posted(self.people.key, again).standing
        assert standing is not None
        return standing


def correlation_of(attempt: Attempt) -> str:
    return correlation_id(str(attempt.tenant_id), attempt.operation.operation_key)


@pytest.fixture
def scene(stripe: LocalStripe) -> Iterator[Scene]:
    people, card = cast(), stripe.card()
    make.policy(people.tenant, by=people.admin, tools={CHARGE: PAYMENT, REFUND: PAYMENT})
    charge = stripe.post("charges", amount=1_000_000, currency="eur", source=card)["id"]
    content = {"/amount": "/amount", "/currency": "/currency", "/source": "/payment_method"}
    config = {
        "api": stripe.url,
        "auth": {"env": "PROVIDER_STRIPE_KEY"},
        "objects": {
            CHARGE: {"kind": "charges", "content": content},
            REFUND: {"kind": "refunds", "content": {"/amount": "/amount", "/charge": "/charge"}},
        },
        "canary": {"kind": "charges", "id": charge},
        "margin_s": None,
        "page_size": 50,
        "rate_per_s": 1000,
    }
    Provider.objects.create(tenant=people.tenant, name="stripe", adapter="stripe", config=config)
    with Proxy(stripe.url) as line:
        yield Scene(people, stripe, line, card, charge)


def find_out() -> None:
    """The reconciler at work until nothing more can be found out; waits are moved into the past."""
    for _ in range(ROUNDS):
        unknown = Attempt.objects.filter(state=State.UNKNOWN)
        if not unknown.exists():
            return
        make.waited(unknown, LONG_AGO, next_check_at=database_clock())
        Provider.objects.filter(probe_at__isnull=False).update(probe_at=database_clock())
        while reconcile_once().more:
            pass


@pytest.mark.parametrize("tool", [CHARGE, REFUND])
def test_a_blind_repeat_happens_twice(scene: Scene, tool: str) -> None:
    """The same request with the same idempotency key, after an answer that never came."""
    attempt = make.dispatched(scene.people.key, tool, args=scene.args(tool, 1))
    scene.line.fault = dropped_after_sending
    with pytest.raises(httpx.RemoteProtocolError):
        scene.send(attempt)
    scene.line.fault = honest
    scene.send(attempt)
    first, second = scene.line.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert len(scene.effects(attempt)) == 2


@pytest.mark.parametrize("tool", [CHARGE, REFUND])
def test_what_was_lost_on_the_way_back_is_found_and_not_repeated(scene: Scene, tool: str) -> None:
    attempt = make.dispatched(scene.people.key, tool, args=scene.args(tool, 1))
    scene.line.fault = dropped_after_sending
    with pytest.raises(httpx.RemoteProtocolError):
        scene.send(attempt)
    attempt = make.reported(scene.people.key, attempt, "unknown")
    assert scene.post_again(attempt).directive == "reconcile"
    refused = make.ask_leave(scene.people.key, attempt)
    assert isinstance(refused, LeaveRefused)

    find_out()

    attempt, (effect,) = make.fresh(attempt), scene.effects(attempt)
    assert (attempt.state, attempt.confirmed_by) == (State.OUTCOME_CONFIRMED, "lookup")
    standing = scene.post_again(attempt)
    assert (standing.directive, standing.result_ref) == ("done", effect)
    refused = make.ask_leave(scene.people.key, attempt)
    assert isinstance(refused, LeaveRefused)
    assert refused.problem is LeaveProblem.ALREADY_DONE


def test_what_never_arrived_is_for_a_person(scene: Scene) -> None:
    attempt = make.dispatched(scene.people.key, CHARGE, args=scene.args(CHARGE, 1))
    scene.line.fault = down
    with pytest.raises(httpx.RemoteProtocolError):
        scene.send(attempt)
    make.reported(scene.people.key, attempt, "unknown")
    find_out()
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.reason) == (State.MANUAL_REVIEW, "not_idempotent")
    assert scene.effects(attempt) == []


def test_a_key_to_another_account_proves_nothing(scene: Scene) -> None:
    """The charge is there; the account that is asked does not even have the canary."""
    attempt = make.dispatched(scene.people.key, CHARGE, args=scene.args(CHARGE, 1))
    scene.send(attempt)
    make.reported(scene.people.key, attempt, "unknown")
    with LocalStripe() as another:
        provider = Provider.objects.get()
        provider.config = {**provider.config, "api": another.url}
        provider.save()
        find_out()
    attempt = make.fresh(attempt)
    assert attempt.state == State.UNKNOWN
    assert LookUp.objects.filter(attempt=attempt).count() == ROUNDS


def test_a_look_up_begins_at_the_first_send_under_whatever_key(scene: Scene) -> None:
    first = make.dispatched(scene.people.key, CHARGE, args=scene.args(CHARGE, 1))
    make.reported(scene.people.key, first, "unknown")
    find_out()
    _approve(scene, first, new_provider_key=True)
    leave = make.ask_leave(scene.people.key, make.fresh(first))
    assert isinstance(leave, LeaveGiven)
    second = make.fresh(leave.attempt)
    assert first.idempotency_key != second.idempotency_key
    assert question_about(second).first_sent_at == first.dispatched_at


def test_nobody_knows_since_when_something_was_sent_without_leave(scene: Scene) -> None:
    attempt = make.recorded(scene.people.key, CHARGE, args=scene.args(CHARGE, 1))
    attempt = make.reported(scene.people.key, attempt, "unknown")
    assert attempt.maybe_sent
    assert question_about(attempt).first_sent_at is None


BOUNDARIES = ("before sending", "request lost", "answer lost", "before the outcome is reported")


@dataclass
class Life:
    """One operation of an agent that dies somewhere on its way."""

    attempt: Attempt
    died: str


@pytest.mark.slow
def test_forty_payments_of_a_dying_agent_happen_once_each(scene: Scene) -> None:
    """A person who approves what is proven absent brings the rest about: forty effects, all confirmed."""
    draw = random.Random(20260811)
    lives = [
        _life(scene, draw.choice([CHARGE, REFUND]), draw.choice(BOUNDARIES), number) for number in range(40)
    ]
    assert {life.died for life in lives} == set(BOUNDARIES)

    durable(lambda: lifecycle.declare_worker_dead(key=scene.people.key, worker_id="worker-1"))
    find_out()

    effects = scene.stripe.all_effects()
    for life in lives:
        arrived = life.died in {"answer lost", "before the outcome is reported"}
        assert len(effects[correlation_of(life.attempt)]) == arrived, life.died
        wanted = State.OUTCOME_CONFIRMED if arrived else State.MANUAL_REVIEW
        assert make.fresh(life.attempt).state == wanted, life.died
    for life in lives:
        if make.fresh(life.attempt).state == State.MANUAL_REVIEW:
            _approve_and_send(scene, life.attempt)
    effects = scene.stripe.all_effects()
    assert [len(effects[correlation_of(life.attempt)]) for life in lives] == [1] * 40
    assert [scene.post_again(life.attempt).directive for life in lives] == ["done"] * 40


def _life(scene: Scene, tool: str, died: str, number: int) -> Life:
    attempt = make.dispatched(scene.people.key, tool, args=scene.args(tool, number))
    if died != "before sending":
        faults = {"request lost": down, "answer lost": dropped_after_sending}
        scene.line.fault = faults.get(died, honest)
        try:
            scene.send(attempt)
        except httpx.RemoteProtocolError:
            assert died != "before the outcome is reported"
    return Life(attempt, died)


def _approve_and_send(scene: Scene, attempt: Attempt) -> None:
    _approve(scene, attempt)
    leave = make.ask_leave(scene.people.key, make.fresh(attempt))
    assert isinstance(leave, LeaveGiven)
    successor = make.fresh(leave.attempt)
    scene.line.fault = honest
    make.reported(scene.people.key, successor, "succeeded", result_ref=scene.send(successor))


def _approve(scene: Scene, attempt: Attempt, *, new_provider_key: bool = False) -> None:
    item = make.item_of(attempt)

    def vote(person: User) -> None:
        lifecycle.approve(
            item_id=item.pk, by=person, why="Absent, asked twice.", new_provider_key=new_provider_key
        )

    for person in (scene.people.approver, scene.people.second_approver):
        durable(lambda person=person: vote(person))  # type: ignore[misc]
