"""The stripe adapter before a real localstripe: every status, what it lists, what it keeps as evidence."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ledger.http import all_within
from ledger.providers import Adapter, AdapterMisconfigured, Question, adapter_for
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.looked_up import LookedUpKind, Record
from tests.support import localstripe
from tests.support.localstripe import DECLINED_CARD, LocalStripe
from tests.support.proxy import LONGEST_WAIT_S, Proxy, Reply, Request, altered, answering

FOUND, ABSENT, UNAVAILABLE = LookedUpKind.FOUND, LookedUpKind.ABSENT, LookedUpKind.UNAVAILABLE
AUTHENTICATED_CARD = "4000002500003155"
SENT_AT = datetime(2026, 8, 11, 12, tzinfo=UTC)
ARGS = {"amount": 1200, "currency": "eur"}
ASKED = Question(
    tool="refund.create",
    args=ARGS,
    args_hash=content_hash(canonical_bytes(ARGS)),
    operation_key="refund:7",
    idempotency_key="il-7",
    correlation_id="ilc-7",
    first_sent_at=SENT_AT,
)
METADATA = {"correlation_id": ASKED.correlation_id}
CONTENT = {"/amount": "/amount", "/currency": "/currency"}
TOOLS = {"charge.create": "charges", "refund.create": "refunds", "payment.create": "payment_intents"}


@pytest.fixture
def line(stripe: LocalStripe) -> Iterator[Proxy]:
    with Proxy(stripe.url) as proxy:
        yield proxy


def configured(line: Proxy, **changed: Any) -> Adapter:
    config = {
        "api": line.url,
        "auth": {"env": "PROVIDER_STRIPE_KEY"},
        "objects": {tool: {"kind": kind, "content": CONTENT} for tool, kind in TOOLS.items()},
        "canary": {"kind": "charges", "id": "ch_canary"},
        "margin_s": None,
        "rate_per_s": 1000,
        **changed,
    }
    return adapter_for(SimpleNamespace(name="stripe", adapter="stripe", config=config))


def documented() -> dict[str, Any]:
    """The configuration the documentation shows, as it stands there."""
    page = (Path(__file__).parents[3] / "docs" / "adapters.md").read_text()
    found = re.search(r"## `stripe`.*?```json\n(.*?)```", page, re.DOTALL)
    assert found is not None
    config: dict[str, Any] = json.loads(found[1])
    return config


def found(line: Proxy, tool: str, **changed: Any) -> Record:
    (record,) = configured(line, **changed).look_up(replace(ASKED, tool=tool)).records
    return record


def test_what_the_documentation_shows_finds_a_charge(stripe: LocalStripe, line: Proxy) -> None:
    """localstripe stands where its address and its canary are named; everything else is as it is shown."""
    args = {**ARGS, "source": stripe.card()}
    made = stripe.post("charges", **args, metadata=METADATA)["id"]
    config = {**documented(), "api": line.url, "canary": {"kind": "charges", "id": made}}
    adapter = adapter_for(SimpleNamespace(name="stripe", adapter="stripe", config=config))
    asked = replace(ASKED, tool="charge.create", args=args, first_sent_at=datetime.now(UTC))
    (record,) = adapter.look_up(asked).records
    assert (record.reference, record.content, record.state) == (made, "same", "done")
    assert adapter.look_up(replace(asked, correlation_id="ilc-8")).canary_seen is True


def listing(*things: dict[str, Any], more: bool = False) -> bytes:
    return json.dumps({"object": "list", "data": things, "has_more": more}).encode()


def thing(word: str, **changed: Any) -> dict[str, Any]:
    return {"id": f"{word}_1", "object": word, "metadata": METADATA, **ARGS, **changed}


CHARGED = {"status": "succeeded", "captured": True, "amount_refunded": 0, "refunded": False}
STATUSES: list[tuple[str, dict[str, Any], str]] = [
    ("refund", {"status": "pending"}, "in_progress"),
    ("refund", {"status": "requires_action"}, "in_progress"),
    ("refund", {"status": "succeeded"}, "done"),
    ("refund", {"status": "failed"}, "failed"),
    ("refund", {"status": "canceled"}, "failed"),
    ("refund", {"status": None}, "in_progress"),
    ("refund", {}, "in_progress"),
    ("refund", {"status": "half_way"}, "in_progress"),
    ("charge", {"status": "pending", "captured": False}, "in_progress"),
    ("charge", {"status": "failed", "captured": False}, "failed"),
    ("charge", CHARGED, "done"),
    ("charge", {**CHARGED, "amount_refunded": 1}, "reversed"),
    ("charge", {**CHARGED, "amount_refunded": 1200, "refunded": True}, "reversed"),
    ("charge", {**CHARGED, "disputed": True}, "reversed"),
    ("charge", {**CHARGED, "captured": False}, "in_progress"),
    ("charge", {**CHARGED, "captured": False, "refunded": True}, "reversed"),
    ("charge", {**CHARGED, "status": "half_way"}, "in_progress"),
    ("payment_intent", {"status": "requires_payment_method"}, "in_progress"),
    ("payment_intent", {"status": "requires_confirmation"}, "in_progress"),
    ("payment_intent", {"status": "requires_action"}, "in_progress"),
    ("payment_intent", {"status": "processing"}, "in_progress"),
    ("payment_intent", {"status": "requires_capture"}, "in_progress"),
    ("payment_intent", {"status": "succeeded", "latest_charge": CHARGED}, "done"),
    ("payment_intent", {"status": "succeeded", "latest_charge": "ch_1"}, "done"),
    ("payment_intent", {"status": "succeeded", "latest_charge": {**CHARGED, "refunded": True}}, "reversed"),
    ("payment_intent", {"status": "canceled"}, "failed"),
    ("payment_intent", {"status": "half_way"}, "in_progress"),
]
TOOL_OF = {"charge": "charge.create", "refund": "refund.create", "payment_intent": "payment.create"}


@pytest.mark.parametrize(("word", "changed", "state"), STATUSES, ids=str)
def test_every_status_has_its_meaning(line: Proxy, word: str, changed: dict[str, Any], state: str) -> None:
    line.fault = answering(200, listing(thing(word, **changed)))
    assert found(line, TOOL_OF[word]).state == state


@pytest.mark.parametrize("word", TOOL_OF)
def test_a_new_status_word_is_named(line: Proxy, word: str) -> None:
    line.fault = answering(200, listing(thing(word, status="half_way")))
    assert "half_way" in configured(line).look_up(replace(ASKED, tool=TOOL_OF[word])).detail


def test_an_authorisation_can_be_what_was_wanted(line: Proxy) -> None:
    line.fault = answering(200, listing(thing("charge", **{**CHARGED, "captured": False})))
    assert found(line, "charge.create", authorised="done").state == "done"
    line.fault = answering(200, listing(thing("payment_intent", status="requires_capture")))
    assert found(line, "payment.create", authorised="done").state == "done"


def test_real_charges(stripe: LocalStripe, line: Proxy) -> None:
    made = stripe.post("charges", **ARGS, source=stripe.card(), metadata=METADATA)
    record = found(line, "charge.create")
    assert (record.reference, record.content, record.state) == (made["id"], "same", "done")
    stripe.post("refunds", charge=made["id"], amount=200)
    assert found(line, "charge.create").state == "reversed"


def test_a_real_declined_charge(stripe: LocalStripe, line: Proxy) -> None:
    answer = stripe.refused("charges", **ARGS, source=stripe.card(DECLINED_CARD), metadata=METADATA)
    assert answer == 402
    assert found(line, "charge.create").state == "failed"


def test_a_real_refund(stripe: LocalStripe, line: Proxy) -> None:
    charge = stripe.post("charges", **ARGS, source=stripe.card())["id"]
    made = stripe.post("refunds", charge=charge, amount=1200, metadata=METADATA)
    record = found(line, "refund.create")
    assert (record.reference, record.content, record.state) == (made["id"], "same", "done")
    assert record.data["charge"] == charge


def test_the_life_of_a_real_payment_intent(stripe: LocalStripe, line: Proxy) -> None:
    def state() -> str:
        return found(line, "payment.create").state

    card = stripe.card()
    made = stripe.post("payment_intents", **ARGS, payment_method=card, metadata=METADATA)
    assert state() == "in_progress"
    confirmed = stripe.post(f"payment_intents/{made['id']}/confirm")
    assert state() == "done"
    stripe.post("refunds", charge=confirmed["latest_charge"]["id"], amount=5)
    assert state() == "reversed"


@pytest.mark.parametrize(
    ("fields", "number", "after", "state"),
    [
        ({}, AUTHENTICATED_CARD, "", "in_progress"),
        ({}, AUTHENTICATED_CARD, "cancel", "failed"),
        ({"capture_method": "manual"}, localstripe.GOOD_CARD, "", "in_progress"),
        ({"capture_method": "manual"}, localstripe.GOOD_CARD, "capture", "done"),
    ],
)
def test_real_payment_intents_that_take_more_steps(
    stripe: LocalStripe, line: Proxy, fields: dict[str, Any], number: str, after: str, state: str
) -> None:
    made = stripe.post(
        "payment_intents",
        **ARGS,
        **fields,
        confirm=True,
        payment_method=stripe.card(number),
        metadata=METADATA,
    )
    if after:
        stripe.post(f"payment_intents/{made['id']}/{after}")
    assert found(line, "payment.create").state == state


def test_evidence_holds_nothing_that_lets_its_reader_pay(stripe: LocalStripe, line: Proxy) -> None:
    made = stripe.post("payment_intents", **ARGS, payment_method=stripe.card(), metadata=METADATA)
    record = found(line, "payment.create")
    assert record.data["metadata"] == METADATA
    assert made["client_secret"] not in repr(record)


def test_much_metadata_is_not_kept(line: Proxy) -> None:
    much = {**METADATA, **{f"k{i}": "x" * 500 for i in range(20)}}
    line.fault = answering(200, listing(thing("refund", status="pending", metadata=much)))
    record = found(line, "refund.create")
    assert record.data["id"] == "refund_1"
    assert "metadata" not in record.data


@pytest.mark.parametrize(
    ("changed", "content"),
    [
        ({}, "same"),
        ({"currency": "EUR"}, "same"),
        ({"currency": "usd"}, "other"),
        ({"amount": 1201}, "other"),
        ({"amount": None}, "other"),
    ],
    ids=str,
)
def test_content_is_compared_and_a_currency_has_no_case(
    line: Proxy, changed: dict[str, Any], content: str
) -> None:
    line.fault = answering(200, listing(thing("refund", **{"status": "succeeded", **changed})))
    assert found(line, "refund.create").content == content


@pytest.mark.parametrize("metadata", [None, {}, {"correlation_id": "ilc-8"}, {"other": "ilc-7"}], ids=str)
def test_what_carries_another_mark_is_not_ours(line: Proxy, metadata: object) -> None:
    line.fault = lambda request, _: (
        Reply(200, listing(thing("refund", metadata=metadata)))
        if "?" in request.target
        else Reply(200, b'{"id": "ch_canary"}')
    )
    looked_up = configured(line).look_up(ASKED)
    assert (looked_up.kind, looked_up.canary_seen) == (ABSENT, True)


def test_another_metadata_key_can_carry_the_mark(line: Proxy) -> None:
    line.fault = answering(
        200, listing(thing("refund", status="succeeded", metadata={"ledger": ASKED.correlation_id}))
    )
    assert found(line, "refund.create", metadata="ledger").state == "done"


def queries(line: Proxy) -> list[dict[str, list[str]]]:
    return [parse_qs(urlsplit(request.target).query) for request in line.requests if "?" in request.target]


def test_a_listing_begins_a_margin_before_the_first_send(line: Proxy) -> None:
    line.fault = answering(200, listing())
    configured(line, margin_s=600).look_up(ASKED)
    begin = int((SENT_AT - timedelta(seconds=600)).timestamp()) - 1
    assert queries(line) == [{"created[gt]": [str(begin)], "limit": ["50"]}]


@pytest.mark.parametrize(("margin_s", "first_sent_at"), [(None, SENT_AT), (600, None)])
def test_without_a_beginning_everything_is_listed(
    line: Proxy, margin_s: float | None, first_sent_at: datetime | None
) -> None:
    line.fault = answering(200, listing())
    configured(line, margin_s=margin_s).look_up(replace(ASKED, first_sent_at=first_sent_at))
    assert queries(line) == [{"limit": ["50"]}]


def test_a_real_listing_with_a_beginning(stripe: LocalStripe, line: Proxy) -> None:
    stripe.post("charges", **ARGS, source=stripe.card(), metadata=METADATA)
    now, charges = datetime.now(UTC), configured(line, margin_s=3600)
    asked = replace(ASKED, tool="charge.create")
    assert charges.look_up(replace(asked, first_sent_at=now)).kind is FOUND
    assert charges.look_up(replace(asked, first_sent_at=now + timedelta(hours=3))).kind is ABSENT


def test_the_version_and_the_connected_account_are_named(line: Proxy) -> None:
    configured(line, account="acct_7").look_up(ASKED)
    sent = line.requests[-1].headers
    assert (sent["stripe-version"], sent["stripe-account"]) == ("2024-06-20", "acct_7")


def test_payment_intents_are_listed_with_their_charge(line: Proxy) -> None:
    line.fault = answering(200, listing())
    configured(line).look_up(replace(ASKED, tool="payment.create"))
    assert queries(line) == [{"expand[]": ["data.latest_charge"], "limit": ["10"]}]


def test_a_page_too_long_to_be_read_is_asked_for_in_halves(stripe: LocalStripe, line: Proxy) -> None:
    card = stripe.card()
    made = {stripe.post("charges", **ARGS, source=card, metadata=METADATA)["id"] for _ in range(5)}
    padded = altered(lambda _, page: {**page, "padding": "x" * 30_000 * len(page["data"])})
    line.fault = padded
    looked_up = configured(line).look_up(replace(ASKED, tool="charge.create"))
    assert {record.reference for record in looked_up.records} == made
    assert [query["limit"] for query in queries(line)] == [["15"], ["8"], ["4"], ["2"], ["2"], ["2"]]


def test_a_page_that_outlasts_the_time_leaves_a_listing_without_an_end(line: Proxy) -> None:
    over = threading.Event()

    def slow(request: Request, _ask: Any) -> Reply:
        if request.number:
            over.wait(LONGEST_WAIT_S)
        return Reply(200, listing(thing("refund", id=f"re_{request.number}"), more=True))

    line.fault = slow
    with all_within(1.0):
        looked_up = configured(line).look_up(ASKED)
    over.set()
    assert (looked_up.kind, looked_up.endless) == (UNAVAILABLE, True)


def test_one_object_too_long_to_be_read_is_unavailable(line: Proxy) -> None:
    line.fault = answering(200, listing(thing("refund", padding="x" * 70_000)))
    looked_up = configured(line).look_up(ASKED)
    assert looked_up.kind is UNAVAILABLE
    assert "64 kB" in looked_up.detail


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (listing(thing("charge", status="succeeded")), "no refund"),
        (listing({"object": "refund"}), "no refund"),
        (listing(more=True), "empty page"),
        (listing(thing("refund"), more=True), "circle"),
        (listing(thing("refund", metadata="x")), "metadata"),
        (b'{"object": "list", "data": []}', "not a list"),
        (b'{"object": "list", "data": [], "has_more": "no"}', "not a list"),
        (b'{"object": "list", "data": {}, "has_more": false}', "not a list"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_answer_that_is_not_the_list_asked_for_is_unavailable(
    line: Proxy, page: bytes, words: str
) -> None:
    line.fault = answering(200, page)
    looked_up = configured(line).look_up(ASKED)
    assert looked_up.kind is UNAVAILABLE
    assert words in looked_up.detail
    assert looked_up.endless == (words == "circle")


def test_a_canary_that_is_not_there_means_another_account(line: Proxy) -> None:
    looked_up = configured(line).look_up(ASKED)
    assert (looked_up.kind, looked_up.canary_seen) == (ABSENT, False)
    assert "canary" in looked_up.detail


def test_a_tool_the_configuration_does_not_know_is_a_mistake_in_it(line: Proxy) -> None:
    with pytest.raises(AdapterMisconfigured, match=r"/objects: does not say what the tool 'ticket.open'"):
        configured(line).look_up(replace(ASKED, tool="ticket.open"))
    assert not line.requests


def test_arguments_known_by_hash_only_are_compared_by_hash(line: Proxy) -> None:
    asked = replace(ASKED, args=None)
    assert configured(line).look_up(asked).kind is LookedUpKind.NO_LOOKUP
    hashed = thing("refund", status="succeeded", metadata={**METADATA, "args_hash": ASKED.args_hash})
    line.fault = answering(200, listing(hashed))
    by_hash = {"refund.create": {"kind": "refunds", "content": {"args_hash": "/metadata/args_hash"}}}
    (record,) = configured(line, objects=by_hash).look_up(asked).records
    assert record.content == "same"


def test_a_missing_secret_names_what_to_set(line: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROVIDER_STRIPE_KEY")
    with pytest.raises(AdapterMisconfigured, match="'stripe', /auth/env: PROVIDER_STRIPE_KEY is not set"):
        configured(line)
