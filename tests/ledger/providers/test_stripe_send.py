"""Money moved by the ledger itself, through a real localstripe: which answer proves what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ledger.http import all_within
from ledger.providers import AdapterMisconfigured, Question, SendingAdapter, SentKind, sender_for
from ledger.rules.looked_up import LookedUpKind
from tests.ledger.providers.test_http_adapter import numbers, question
from tests.support.localstripe import DECLINED_CARD, LocalStripe
from tests.support.proxy import Proxy, Reply, answering, down, dropped_after_sending

CHARGE, REFUND, PAYMENT = "charge.create", "refund.create", "payment.create"
ALL = "{args}"


class Counter:
    """An account behind a line, and a sender that uses it."""

    def __init__(self, stripe: LocalStripe, line: Proxy) -> None:
        self.stripe, self.line, self.card = stripe, line, stripe.card()
        self.charge = stripe.post("charges", amount=5_000, currency="eur", source=self.card)["id"]

    def adapter(self, **changed: Any) -> SendingAdapter:
        content = {"/amount": "/amount", "/currency": "/currency"}
        config = {
            "api": self.line.url,
            "auth": {"env": "PROVIDER_STRIPE_KEY"},
            "objects": {
                CHARGE: {"kind": "charges", "content": content, "send": ALL},
                REFUND: {
                    "kind": "refunds",
                    "content": {"/amount": "/amount", "/charge": "/charge"},
                    "send": {"charge": "{args/charge}", "amount": "{args/amount}"},
                },
                PAYMENT: {"kind": "payment_intents", "content": content, "send": ALL},
                "other": {"kind": "charges", "content": content},
            },
            "canary": {"kind": "charges", "id": self.charge},
            "margin_s": None,
            "page_size": 50,
            "rate_per_s": 1000,
            **changed,
        }
        return sender_for(SimpleNamespace(name="stripe", adapter="stripe", config=config))

    def call(self, tool: str = CHARGE, **args: Any) -> Question:
        usual: dict[str, dict[str, Any]] = {
            CHARGE: {"amount": 700, "currency": "EUR", "source": self.card},
            REFUND: {"amount": 70, "charge": self.charge},
            PAYMENT: {"amount": 700, "currency": "eur", "payment_method": self.card, "confirm": True},
        }
        asked = question(args={**usual.get(tool, usual[CHARGE]), **args})
        return replace(asked, tool=tool, idempotency_key=f"il-{next(numbers)}")

    def effects(self, call: Question) -> list[str]:
        return self.stripe.effects(call.correlation_id)


@pytest.fixture
def counter(stripe: LocalStripe) -> Iterator[Counter]:
    with Proxy(stripe.url) as line:
        yield Counter(stripe, line)


@pytest.mark.parametrize("tool", [CHARGE, REFUND, PAYMENT])
def test_what_is_sent_has_its_mark_and_is_found_again(counter: Counter, tool: str) -> None:
    call, adapter = counter.call(tool), counter.adapter()
    answer = adapter.send(call)
    assert (answer.kind, answer.reachable) == (SentKind.ACCEPTED, True), answer
    request = counter.line.requests[-1]
    assert (request.method, request.headers["idempotency-key"]) == ("POST", call.idempotency_key)
    assert answer.reference in counter.effects(call)
    found = adapter.look_up(call)
    assert [record.reference for record in found.records] == [answer.reference]


def test_metadata_of_the_arguments_is_kept_and_ours_wins(counter: Counter) -> None:
    call = counter.call(metadata={"order": "7", "correlation_id": "forged"})
    assert counter.adapter().send(call).kind is SentKind.ACCEPTED
    assert len(counter.effects(call)) == 1
    assert b"metadata%5Border%5D=7" in counter.line.requests[-1].body
    assert b"forged" not in counter.line.requests[-1].body


def test_a_declined_card_is_declined(counter: Counter) -> None:
    call = counter.call(source=counter.stripe.card(DECLINED_CARD))
    answer = counter.adapter().send(call)
    assert (answer.kind, answer.error_class) == (SentKind.REFUSED, "declined"), answer


def test_wrong_arguments_are_refused_there(counter: Counter) -> None:
    answer = counter.adapter().send(counter.call(amount="much"))
    assert (answer.kind, answer.error_class) == (SentKind.REFUSED, "validation"), answer


def test_arguments_that_are_missing_send_nothing(counter: Counter) -> None:
    call = replace(counter.call(REFUND), args={"amount": 7})
    answer = counter.adapter().send(call)
    assert (answer.kind, answer.error_class) == (SentKind.REFUSED, "validation")
    assert counter.line.requests == []


def test_a_tool_that_does_not_say_how_sends_nothing(counter: Counter) -> None:
    assert counter.adapter().send(counter.call("other")).kind is SentKind.NOT_SENT
    assert counter.line.requests == []


def test_an_account_that_nothing_is_sent_through_is_no_sender(counter: Counter) -> None:
    objects = {CHARGE: {"kind": "charges", "content": {"/amount": "/amount"}}}
    with pytest.raises(AdapterMisconfigured, match="does not say how to send"):
        counter.adapter(objects=objects)


@pytest.mark.parametrize(("fault", "effects"), [(down, 0), (dropped_after_sending, 1)])
def test_a_lost_answer_is_unknown_and_found_out(counter: Counter, fault: Any, effects: int) -> None:
    call, adapter = counter.call(), counter.adapter()
    counter.line.fault = fault
    answer = adapter.send(call)
    assert (answer.kind, answer.reachable) == (SentKind.UNKNOWN, False)
    assert len(counter.effects(call)) == effects
    counter.line.fault = lambda _, ask: ask()
    found = adapter.look_up(call)
    assert found.kind is (LookedUpKind.FOUND if effects else LookedUpKind.ABSENT)


def error(status: int, kind: str, **more: Any) -> Any:
    return answering(status, json.dumps({"error": {"type": kind, **more}}).encode())


MEANS: list[tuple[Any, SentKind, str]] = [
    (error(400, "invalid_request_error", code="parameter_missing"), SentKind.REFUSED, "validation"),
    (error(404, "invalid_request_error", code="resource_missing"), SentKind.REFUSED, "validation"),
    (error(402, "card_error", code="card_declined"), SentKind.REFUSED, "declined"),
    (error(400, "idempotency_error"), SentKind.UNKNOWN, ""),
    (error(400, "invalid_request_error", code="charge_already_refunded"), SentKind.UNKNOWN, ""),
    (error(402, "card_error", code="card_declined", payment_intent={"id": "pi_7"}), SentKind.UNKNOWN, ""),
    (error(402, "api_error"), SentKind.UNKNOWN, ""),
    (error(401, "invalid_request_error"), SentKind.NOT_SENT, ""),
    (error(403, "invalid_request_error"), SentKind.NOT_SENT, ""),
    (error(409, "idempotency_error"), SentKind.UNKNOWN, ""),
    (error(429, "invalid_request_error", code="lock_timeout"), SentKind.UNKNOWN, ""),
    (error(500, "api_error"), SentKind.UNKNOWN, ""),
    (answering(400, b"<h1>Bad request</h1>"), SentKind.UNKNOWN, ""),
    (answering(401, b"<h1>Who are you?</h1>"), SentKind.UNKNOWN, ""),
    (answering(402, b"{}"), SentKind.UNKNOWN, ""),
    (answering(200, b"{}"), SentKind.UNKNOWN, ""),
    (lambda *_: Reply(302, b"", {"Location": "/elsewhere"}), SentKind.UNKNOWN, ""),
]


@pytest.mark.parametrize(("fault", "kind", "error_class"), MEANS)
def test_only_stripes_own_words_prove_that_nothing_happened(
    counter: Counter, fault: Any, kind: SentKind, error_class: str
) -> None:
    counter.line.fault = fault
    answer = counter.adapter().send(counter.call())
    assert (answer.kind, answer.error_class) == (kind, error_class), answer


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_named_and_the_account_left_alone(counter: Counter, status: int) -> None:
    counter.line.fault = error(status, "invalid_request_error")
    adapter = counter.adapter()
    assert adapter.send(counter.call()).refused_credential == "PROVIDER_STRIPE_KEY"
    assert adapter.wants_rest_s() > 20


def test_time_of_our_own_that_was_over_says_nothing_of_stripe(counter: Counter) -> None:
    call = counter.call()
    with all_within(0):
        answer = counter.adapter().send(call)
    assert (answer.kind, answer.reachable, counter.effects(call)) == (SentKind.NOT_SENT, None, [])


def test_an_intent_that_still_needs_something_is_unknown_and_named(counter: Counter) -> None:
    call = counter.call(PAYMENT, confirm=False)
    answer = counter.adapter().send(call)
    assert (answer.kind, answer.request_id) == (SentKind.UNKNOWN, counter.effects(call)[0])
