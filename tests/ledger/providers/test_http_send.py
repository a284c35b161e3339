"""The declarative adapter as a sender, against a real provider process: what an answer proves."""

import json
import re
import socket
from dataclasses import replace
from typing import Any

import pytest

from ledger.providers import AdapterMisconfigured, Question, SendingAdapter, SentKind, sender_for
from ledger.rules.looked_up import LookedUpKind
from tests.ledger.providers.test_http_adapter import ARGS, PAGE, configured, question
from tests.support.provider import ProviderProcess


def documented_send() -> dict[str, Any]:
    """The part of the configuration that the documentation shows for sending."""
    shown = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    part: dict[str, Any] = next(json.loads(text) for text in shown if text.startswith('{\n  "send"'))["send"]
    return part


def sending(provider: ProviderProcess, url: str = "", **changed: Any) -> SendingAdapter:
    part = documented_send()
    part["url"] = url or part["url"].replace("http://127.0.0.1:8123", provider.url)
    adapter = configured(provider, send={**part, **changed})
    assert isinstance(adapter, SendingAdapter)
    return adapter


def call(**changed: Any) -> Question:
    """What is to be sent for an operation that no other test has, under a provider key of its own."""
    asked = question(**changed)
    return replace(asked, idempotency_key=changed.get("idempotency_key", f"key of {asked.correlation_id}"))


def test_what_the_documentation_shows_sends_a_refund_and_finds_it(provider: ProviderProcess) -> None:
    asked, adapter = call(), sending(provider)
    answer = adapter.send(asked)
    assert (answer.kind, answer.reachable) == (SentKind.ACCEPTED, True)
    assert provider.effects(asked.correlation_id) == 1
    looked_up = adapter.look_up(asked)
    assert [record.reference for record in looked_up.records] == [answer.reference]
    assert looked_up.records[0].data["amount"] == ARGS["amount"], "a number stays a number"


def test_the_same_provider_key_again_is_the_same_effect(provider: ProviderProcess) -> None:
    asked, adapter = call(), sending(provider)
    assert adapter.send(asked) == adapter.send(asked)
    assert provider.effects(asked.correlation_id) == 1


NO_RECEIPT: list[tuple[str, SentKind, bool | None, int]] = [
    ("accept_then_drop", SentKind.UNKNOWN, False, 1),
    ("drop_before", SentKind.UNKNOWN, False, 0),
    ("too_many_requests", SentKind.UNKNOWN, False, 0),
    ("server_error", SentKind.UNKNOWN, False, 0),
    ("forbidden", SentKind.UNKNOWN, True, 0),
    ("truncated", SentKind.UNKNOWN, False, 1),
]


@pytest.mark.parametrize(
    ("mode", "kind", "reachable", "effects"), NO_RECEIPT, ids=[m for m, *_ in NO_RECEIPT]
)
def test_what_proves_nothing_is_unknown(
    provider: ProviderProcess, mode: str, kind: SentKind, reachable: bool, effects: int
) -> None:
    asked, adapter = call(), sending(provider)
    provider.set_mode(mode, on="send", times=1)
    answer = adapter.send(asked)
    assert (answer.kind, answer.reference, answer.reachable) == (kind, "", reachable)
    assert provider.effects(asked.correlation_id) == effects


def test_after_a_429_nothing_is_sent_for_a_while(provider: ProviderProcess) -> None:
    adapter = sending(provider)
    provider.set_mode("too_many_requests", on="send", times=1)
    adapter.send(call())
    assert adapter.wants_rest_s() > 0
    asked = call()
    assert (adapter.send(asked).kind, provider.effects(asked.correlation_id)) == (SentKind.NOT_SENT, 0)


def test_nobody_there_means_nothing_was_sent(provider: ProviderProcess) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        answer = sending(provider, f"http://127.0.0.1:{taken.getsockname()[1]}/refunds").send(call())
    assert (answer.kind, answer.reachable) == (SentKind.NOT_SENT, False)


def test_an_address_that_must_not_be_asked_is_not_sent_to(provider: ProviderProcess) -> None:
    answer = sending(provider, "http://169.254.169.254/refunds").send(call())
    assert (answer.kind, answer.reachable) == (SentKind.NOT_SENT, None)


def test_only_a_configured_refusal_is_one(provider: ProviderProcess) -> None:
    first = call()
    other = call(idempotency_key=first.idempotency_key)
    sending(provider).send(first)
    assert sending(provider).send(other).kind is SentKind.UNKNOWN, "the provider answers 409"
    refused = sending(provider, no_effect={"409": "refused"}).send(other)
    assert (refused.kind, refused.error_class) == (SentKind.REFUSED, "refused")
    assert "Idempotency-Key" in refused.detail
    assert provider.effects(other.correlation_id) == 0


UNPROVEN: list[tuple[dict[str, Any], str]] = [
    ({"state": {"pointer": "/status", "done": ["paid"], "in_progress": ["succeeded"]}}, "in_progress"),
    ({"state": {"pointer": "/status", "done": ["paid"]}}, "not configured"),
    ({"content": {"/amount": "/currency"}}, "other content"),
    ({"reference": "/number"}, "no reference"),
    ({"reference": "/metadata"}, "no reference"),
    ({"record": "/data"}, "no record"),
]


@pytest.mark.parametrize(("answer", "words"), UNPROVEN, ids=[words for _, words in UNPROVEN])
def test_an_accepted_send_that_proves_too_little_is_unknown(
    provider: ProviderProcess, answer: dict[str, Any], words: str
) -> None:
    asked = call()
    said = sending(provider, answer=answer).send(asked)
    assert (said.kind, said.reference) == (SentKind.UNKNOWN, "")
    assert words in said.detail
    assert provider.effects(asked.correlation_id) == 1
    named = (
        provider_reference(provider, asked) if "reference" not in answer and "record" not in answer else ""
    )
    assert said.request_id == named, "what the answer names is kept"


def provider_reference(provider: ProviderProcess, asked: Question) -> str:
    looked_up = configured(provider).look_up(asked)
    assert looked_up.kind is LookedUpKind.FOUND
    return str(looked_up.records[0].reference)


def test_an_answer_that_repeats_nothing_may_rest_on_its_reference(provider: ProviderProcess) -> None:
    bare = {"content": {}, "state": {"always": "done"}, "request_id": "/status"}
    said = sending(provider, answer=bare).send(call())
    assert (said.kind, said.request_id) == (SentKind.ACCEPTED, "succeeded")


def test_all_arguments_can_be_the_body(provider: ProviderProcess) -> None:
    asked = call(args={**ARGS, "metadata": {"correlation_id": "whole"}, "note": None})
    sent = sending(provider, body="{args}", answer={"content": {"/note": "/note", "/amount": "/amount"}})
    assert sent.send(asked).kind is SentKind.ACCEPTED
    assert provider.effects("whole") == 1


@pytest.mark.parametrize("args", [None, {"amount": 1, "currency": "EUR"}])
def test_without_a_value_nothing_is_sent(provider: ProviderProcess, args: dict[str, Any] | None) -> None:
    before = len(provider.requests("POST"))
    answer = sending(provider).send(call(args=args))
    assert (answer.kind, answer.error_class) == (SentKind.REFUSED, "validation")
    assert len(provider.requests("POST")) == before


def test_a_configuration_that_cannot_send_is_no_sender(provider: ProviderProcess) -> None:
    row = type("Row", (), {"name": "bank", "adapter": "http", "config": configuration_without_send(provider)})
    with pytest.raises(AdapterMisconfigured, match="provider 'bank', /send: it does not say how to send"):
        sender_for(row())


def configuration_without_send(provider: ProviderProcess) -> dict[str, Any]:
    shown = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    config: dict[str, Any] = json.loads(shown[0])
    return config
