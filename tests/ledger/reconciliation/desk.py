"""What the tests of the ledger's own sender do again and again."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from ledger.lifecycle import LeaveProblem, LeaveRefused
from ledger.models import Attempt, Event, Provider, Turn
from ledger.reconciliation import SendReport, reconcile_once, resend, send_once
from ledger.rules.keys import correlation_id
from ledger.transactions import database_clock
from tests.support import make
from tests.support.cast import Cast
from tests.support.provider import ProviderProcess, asking, sending

REFUND = make.REFUND
SECOND = "refund.second"
OWN = {
    "effect": "payment",
    "idempotent": True,
    "key_ttl_s": 3_600,
    "provider": "bank",
    "executor": "ledger",
    "approvals": 1,
    "settle_s": 0.05,
}
_numbers = count(1)


def refunds(url: str) -> dict[str, Any]:
    """How refunds are looked up, and how they are sent."""
    resource, fields = f"{url}/refunds", ("amount", "currency")
    send = {**sending(resource, fields), "no_effect": {"409": "refused"}}
    return asking(resource, fields) | {"send": send}


@dataclass
class Desk:
    """One tenant, its agent, and the provider that its refunds go to."""

    people: Cast
    provider: ProviderProcess

    def prepare(self) -> Desk:
        self.rule()
        Provider.objects.create(
            tenant=self.people.tenant, name="bank", adapter="http", config=refunds(self.provider.url)
        )
        return self

    def rule(self, **changed: Any) -> None:
        """Publish the rule of refunds, changed so."""
        make.policy(self.people.tenant, tools={REFUND: {**OWN, **changed}})

    def configure(self, **changed: Any) -> None:
        Provider.objects.filter(name="bank").update(config={**refunds(self.provider.url), **changed})

    def add_second_provider(self) -> None:
        """SECOND is sent through another provider, at the same address."""
        rules = {REFUND: OWN, SECOND: {**OWN, "provider": "second"}}
        make.policy(self.people.tenant, tools=rules)
        Provider.objects.create(
            tenant=self.people.tenant, name="second", adapter="http", config=refunds(self.provider.url)
        )

    @contextmanager
    def nobody_listening(self) -> Iterator[None]:
        """Inside, what is sent through the bank goes to a port at which nobody listens."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/refunds"
            self.configure(send={**self.send_part, "url": url})
            yield
        self.configure()

    @property
    def send_part(self) -> dict[str, Any]:
        part: dict[str, Any] = Provider.objects.get(name="bank").config["send"]
        return part

    def posted(self, **intent: Any) -> Attempt:
        """An intent of the agent, under a key that the provider has not seen in any other test."""
        args = {"amount": next(_numbers), "currency": "EUR", "customer": "cus_7"}
        key = f"refund:{id(self)}:{next(_numbers)}"
        return make.recorded(self.people.key, REFUND, **{"args": args, "operation_key": key, **intent})

    def sends(self) -> SendReport:
        """One pass of the sender."""
        return send_once()

    def sends_what_waits(self) -> SendReport:
        """One pass after every back-off and every rest is over."""
        Attempt.objects.update(send_again_at=None)
        Turn.objects.filter(name__startswith="sends through").delete()
        return send_once()

    def sends_in_vain(self, attempt: Attempt) -> None:
        """It is sent and never arrives, and is looked up until that is certain."""
        self.provider.set_mode("drop_before", on="send", times=1)
        self.sends_what_waits()
        reconcile_once()
        self.settle_window_over(attempt)
        reconcile_once()

    def effects(self, attempt: Attempt) -> int:
        operation = attempt.operation
        return self.provider.effects(correlation_id(str(operation.tenant_id), operation.operation_key))

    def settle_window_over(self, attempt: Attempt) -> None:
        make.waited(Attempt.objects.filter(pk=attempt.pk), next_check_at=database_clock())

    def agent_is_refused(self, attempt: Attempt) -> LeaveProblem:
        answer = make.ask_leave(self.people.key, attempt)
        assert isinstance(answer, LeaveRefused)
        return answer.problem


def history(attempt: Attempt) -> list[tuple[str, str]]:
    """What happened to the operation, by whom."""
    return [(event.kind, event.actor_kind) for event in events(attempt)]


def events(attempt: Attempt, kind: str = "") -> list[Event]:
    found = attempt.operation.events.order_by("sequence")
    return list(found.filter(kind=kind) if kind else found)


def between(monkeypatch: pytest.MonkeyPatch, point: str, happens: Callable[[], object]) -> None:
    """Let something happen while the sender is at this point."""

    def at(name: str) -> None:
        if name == point:
            happens()

    monkeypatch.setattr(resend, "fault_point", at)
