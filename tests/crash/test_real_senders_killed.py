"""The ledger's own sender killed at its boundaries, at providers that keep no keys: real mail, and charges.

At most one effect each, and it is found out; what is proven absent is for a person."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ledger.faults import ARMED
from ledger.models import Attempt, Provider
from ledger.queries.invariants import findings
from ledger.reconciliation import reconcile_once, sweep_once
from ledger.rules.keys import correlation_id
from ledger.transactions import database_clock
from tests.crash.test_sender_killed import AFTER_IT_IS_SENT, BEFORE_IT_IS_SENT
from tests.crash.world import WITHIN_S
from tests.ledger.providers.mail import ARGS as MAIL_ARGS
from tests.ledger.providers.mail import configuration as mail_configuration
from tests.support import localstripe, make
from tests.support.beside import start_command
from tests.support.cast import Cast, cast
from tests.support.localstripe import LocalStripe
from tests.support.mailserver import DOMAIN, MailServer
from tests.support.processes import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.slow]

RULE = {"provider": "real", "executor": "ledger", "dispatch_timeout_s": 30, "settle_s": 0.2, "approvals": 1}


@dataclass
class Way:
    """One tool that the ledger sends through a real provider, which counts."""

    people: Cast
    tool: str
    args: dict[str, Any]
    environment: dict[str, str]
    counted: Callable[[str], int]

    def prepare(self, effect: str, adapter: str, config: dict[str, Any]) -> Way:
        make.policy(self.people.tenant, tools={self.tool: {**RULE, "effect": effect}})
        Provider.objects.create(tenant=self.people.tenant, name="real", adapter=adapter, config=config)
        make.recorded(self.people.key, self.tool, args=self.args, operation_key="the-operation")
        return self

    def passes(self, dies_at: str = "") -> int:
        """One pass of a worker in a process of its own."""
        environment = {ARMED: dies_at, **self.environment}
        return start_command("reconcile", "--once", **environment).wait(WITHIN_S)

    @property
    def attempt(self) -> Attempt:
        return Attempt.objects.select_related("operation").latest("number")

    @property
    def effects(self) -> int:
        operation = self.attempt.operation
        return self.counted(correlation_id(str(operation.tenant_id), operation.operation_key))

    def found_out(self) -> Attempt:
        """The lease runs out, and the provider is asked until nothing more can be learnt."""

        def settled() -> bool:
            Attempt.objects.filter(state="DISPATCHED").update(lease_until=database_clock())
            sweep_once()
            make.waited(Attempt.objects.all(), next_check_at=database_clock())
            reconcile_once()
            return self.attempt.state not in ("DISPATCHED", "UNKNOWN")

        wait_until(settled, within_s=WITHIN_S, what="it is found out")
        return self.attempt


@pytest.fixture(params=["mail", "stripe"])
def way(
    request: pytest.FixtureRequest,
    transactional_db: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Way]:
    if request.param == "mail":
        with MailServer(tmp_path / "mail") as server:
            monkeypatch.setenv("PROVIDER_MAIL_SENT", str(server.sent))
            yield by_mail(server)
    else:
        monkeypatch.setenv("PROVIDER_STRIPE_KEY", localstripe.SECRET)
        with LocalStripe() as stripe:
            yield by_stripe(stripe)
    assert list(findings()) == []


def by_mail(server: MailServer) -> Way:
    def counted(correlation: str) -> int:
        return server.effects(f"<{correlation}@{DOMAIN}>")

    environment = {"PROVIDER_MAIL_SENT": str(server.sent)}
    way = Way(cast(), "email.send", dict(MAIL_ARGS), environment, counted)
    return way.prepare("message", "smtp", mail_configuration(server))


def by_stripe(stripe: LocalStripe) -> Way:
    card = stripe.card()
    canary = stripe.post("charges", amount=1, currency="eur", source=card)["id"]
    args = {"amount": 700, "currency": "eur", "source": card}
    content = {"/amount": "/amount", "/currency": "/currency", "/source": "/payment_method"}
    config = {
        "api": stripe.url,
        "auth": {"env": "PROVIDER_STRIPE_KEY"},
        "objects": {"charge.create": {"kind": "charges", "content": content, "send": "{args}"}},
        "canary": {"kind": "charges", "id": canary},
        "margin_s": None,
        "page_size": 50,
        "rate_per_s": 1000,
    }
    environment = {"PROVIDER_STRIPE_KEY": localstripe.SECRET}
    way = Way(cast(), "charge.create", args, environment, lambda mark: len(stripe.effects(mark)))
    return way.prepare("payment", "stripe", config)


@pytest.mark.parametrize("point", ["leave.before_commit"])
def test_killed_before_leave_it_is_sent_later_once(way: Way, point: str) -> None:
    assert way.passes(dies_at=point) == -signal.SIGKILL
    assert (way.attempt.state, way.effects) == ("INTENT_RECORDED", 0)
    assert way.passes() == 0
    assert (way.attempt.state, way.effects) == ("OUTCOME_CONFIRMED", 1)


@pytest.mark.parametrize("point", BEFORE_IT_IS_SENT)
def test_killed_before_sending_it_is_absent_and_for_a_person(way: Way, point: str) -> None:
    assert way.passes(dies_at=point) == -signal.SIGKILL
    attempt = way.found_out()
    assert (attempt.state, attempt.reason, way.effects) == ("MANUAL_REVIEW", "not_idempotent", 0)
    assert way.passes() == 0
    assert way.effects == 0, "nobody approved it"


@pytest.mark.parametrize("point", AFTER_IT_IS_SENT)
def test_killed_after_sending_it_is_found_and_never_sent_again(way: Way, point: str) -> None:
    assert way.passes(dies_at=point) == -signal.SIGKILL
    assert (way.attempt.state, way.effects) == ("DISPATCHED", 1)
    attempt = way.found_out()
    assert (attempt.state, attempt.confirmed_by) == ("OUTCOME_CONFIRMED", "lookup")
    assert way.passes() == 0
    assert way.effects == 1
