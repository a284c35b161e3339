"""The declarative adapter against a real provider process: what it finds, and what it never calls absent."""

import copy
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ledger.http import AddressRefused, all_within
from ledger.providers import Adapter, AdapterMisconfigured, Question, adapter_for
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.looked_up import LookedUp, LookedUpKind
from tests.support.provider import ProviderProcess

FOUND, ABSENT, UNAVAILABLE = LookedUpKind.FOUND, LookedUpKind.ABSENT, LookedUpKind.UNAVAILABLE
PAGE = Path(__file__).parents[3] / "docs" / "adapters.md"
ARGS = {"amount": 1200, "currency": "EUR", "charge": "ch_7"}
numbers = itertools.count()


def documented() -> dict[str, Any]:
    """The configuration the documentation shows, as it stands there."""
    found = re.search(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    config: dict[str, Any] = json.loads(found[1])
    return config


def configured(provider: ProviderProcess, **changed: Any) -> Adapter:
    at_port = json.dumps(documented()).replace("http://127.0.0.1:8123", provider.url)
    config = {**json.loads(at_port), "rate_per_s": 1000, **changed}
    kept = {name: value for name, value in config.items() if value != "left out"}
    return adapter_for(SimpleNamespace(name="payments", adapter="http", config=kept))


def question(**changed: Any) -> Question:
    """About an operation that no other test has."""
    operation = f"ilc-{next(numbers)} ü/&?"
    usual = Question(
        tool="refund",
        args=ARGS,
        args_hash=content_hash(canonical_bytes(ARGS)),
        operation_key="refund:7",
        idempotency_key="il-1",
        correlation_id=operation,
    )
    return replace(usual, **changed)


def sent(provider: ProviderProcess, asked: Question, **changed: Any) -> str:
    """Let the provider have the effect that is asked about; returns its reference."""
    body = {**ARGS, "metadata": {"correlation_id": asked.correlation_id, "args_hash": asked.args_hash}}
    resource = changed.pop("resource", "refunds")
    return str(provider_send(provider, resource, {**body, **changed})["id"])


def provider_send(provider: ProviderProcess, resource: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": "Bearer provider-secret"}
    thing: dict[str, Any] = provider._call("POST", f"/{resource}", body, headers)
    return thing


def test_what_the_documentation_shows_finds_a_refund(provider: ProviderProcess) -> None:
    asked = question()
    reference = sent(provider, asked)
    sent(provider, question())
    looked_up = configured(provider).look_up(asked)
    assert looked_up.kind is FOUND
    (record,) = looked_up.records
    assert (record.reference, record.content, record.state) == (reference, "same", "done")
    assert record.data["metadata"] == {"correlation_id": asked.correlation_id, "args_hash": asked.args_hash}


def test_what_was_never_sent_is_absent(provider: ProviderProcess) -> None:
    sent(provider, question())
    assert configured(provider).look_up(question()) == LookedUp(ABSENT, canary_seen=True)


def test_without_a_canary_nothing_is_said_about_one(provider: ProviderProcess) -> None:
    assert configured(provider, canary="left out").look_up(question()) == LookedUp(ABSENT)


SEEN_THROUGH_A_FAULT: list[tuple[str, LookedUpKind, bool | None, list[tuple[str, str]]]] = [
    ("honest", FOUND, None, [("same", "done")]),
    ("several", FOUND, None, [("same", "done"), ("same", "done")]),
    ("in_progress", FOUND, None, [("same", "in_progress")]),
    ("unknown_word", FOUND, None, [("same", "in_progress")]),
    ("failed", FOUND, None, [("same", "failed")]),
    ("reversed", FOUND, None, [("same", "reversed")]),
    ("other_content", FOUND, None, [("other", "done")]),
    ("lag", ABSENT, True, []),
    ("wrong_tenant", ABSENT, False, []),
    ("not_found_for_forbidden", UNAVAILABLE, None, []),
    ("forbidden", UNAVAILABLE, None, []),
    ("too_many_requests", UNAVAILABLE, None, []),
    ("server_error", UNAVAILABLE, None, []),
    ("truncated", UNAVAILABLE, None, []),
    ("not_json", UNAVAILABLE, None, []),
    ("endless_pages", UNAVAILABLE, None, []),
    ("down", UNAVAILABLE, None, []),
]


@pytest.mark.parametrize(
    ("mode", "kind", "canary_seen", "records"),
    SEEN_THROUGH_A_FAULT,
    ids=[row[0] for row in SEEN_THROUGH_A_FAULT],
)
def test_what_each_fault_looks_like(
    provider: ProviderProcess,
    mode: str,
    kind: LookedUpKind,
    canary_seen: bool | None,
    records: list[tuple[str, str]],
) -> None:
    asked = question()
    sent(provider, asked)
    provider.set_mode(mode, on="look_up")
    looked_up = configured(provider).look_up(asked)
    assert looked_up.kind is kind
    assert looked_up.canary_seen is canary_seen
    assert [(record.content, record.state) for record in looked_up.records] == records


def test_an_unknown_status_word_is_named(provider: ProviderProcess) -> None:
    asked = question()
    sent(provider, asked)
    provider.set_mode("unknown_word")
    assert "zombified" in configured(provider).look_up(asked).detail


def test_a_provider_that_wants_to_be_left_alone_is_not_asked_meanwhile(provider: ProviderProcess) -> None:
    provider.set_mode("too_many_requests")
    adapter, before = configured(provider), len(provider.requests())
    assert [adapter.look_up(question()).kind for _ in range(3)] == [UNAVAILABLE] * 3
    assert len(provider.requests()) == before + 1


@pytest.mark.parametrize("fault", ["too_many_requests", "server_error", "truncated", "down"])
def test_a_canary_that_cannot_be_read_decides_nothing(provider: ProviderProcess, fault: str) -> None:
    """The list was read to its end and was empty; then the provider failed."""
    adapter = configured(provider, request={"url": f"{provider.url}/refunds?correlation_id=none"})
    before = len(provider.requests())
    original = adapter._canary_seen  # type: ignore[attr-defined]

    def canary_after_the_fault() -> bool | None:
        provider.set_mode(fault)
        return bool(original())

    adapter._canary_seen = canary_after_the_fault  # type: ignore[attr-defined]
    assert adapter.look_up(question()).kind is UNAVAILABLE
    assert provider.requests()[before:] == ["/refunds?correlation_id=none", "/refunds/canary"]


def test_a_provider_that_is_gone_is_unavailable(provider: ProviderProcess) -> None:
    adapter = configured(provider)
    provider.kill()
    assert adapter.look_up(question()).kind is UNAVAILABLE
    provider.start()


def test_every_page_is_read(provider: ProviderProcess) -> None:
    asked = question()
    references = [sent(provider, asked) for _ in range(7)]
    looked_up = configured(provider).look_up(asked)
    assert [record.reference for record in looked_up.records] == references


def test_a_next_page_can_be_a_value(provider: ProviderProcess) -> None:
    """`/data/0/page` stands for what many providers call a cursor."""
    asked = question()
    sent(provider, asked, page=2)
    sent(provider, asked, page=None)
    config = documented()["request"]["url"].replace("http://127.0.0.1:8123", provider.url)
    one_each = {"url": config.replace("limit=5", "limit=1")}
    adapter = configured(
        provider, request=one_each, next_page={"pointer": "/data/0/page", "parameter": "page"}
    )
    assert len(adapter.look_up(asked).records) == 2


@pytest.mark.parametrize(
    ("following", "words"),
    [
        ("http://127.0.0.1:1/refunds", "another host"),
        ("//elsewhere.test/x", "another host"),
        (7, "not an address"),
        ({"a": 1}, "not an address"),
    ],
    ids=str,
)
def test_a_next_page_is_never_asked_for_elsewhere(
    provider: ProviderProcess, following: object, words: str
) -> None:
    asked = question()
    sent(provider, asked, following=following)
    looked_up = configured(provider, next_page={"pointer": "/data/0/following"}).look_up(asked)
    assert looked_up.kind is UNAVAILABLE
    assert words in looked_up.detail


@pytest.mark.parametrize("most", [1, 2])
def test_a_listing_that_was_not_read_to_its_end_is_unavailable(provider: ProviderProcess, most: int) -> None:
    asked = question()
    for _ in range(11):
        sent(provider, asked)
    looked_up = configured(provider, max_pages=most).look_up(asked)
    assert (looked_up.kind, looked_up.records) == (UNAVAILABLE, ())
    assert "too many pages" in looked_up.detail
    assert looked_up.endless


def test_a_listing_that_takes_more_time_than_there_is_has_no_end(provider: ProviderProcess) -> None:
    """The provider is there, and would be asked as much again in vain. Where it never answered, it is not."""
    asked = question()
    for _ in range(11):
        sent(provider, asked)
    slow = configured(provider, max_pages=9, rate_per_s=0.1)
    with all_within(5.0):
        answers = [slow.look_up(asked) for _ in range(2)]
    assert [(looked_up.kind, looked_up.endless) for looked_up in answers] == [
        (UNAVAILABLE, True),
        (UNAVAILABLE, False),
    ]


def test_a_reference_that_no_attempt_can_keep_is_a_mistake_in_the_configuration(
    provider: ProviderProcess,
) -> None:
    asked = question()
    sent(provider, asked, note="x" * 1_001)
    with pytest.raises(AdapterMisconfigured, match="1001 characters"):
        configured(provider, reference="/note").look_up(asked)


def test_pages_in_a_circle_end(provider: ProviderProcess) -> None:
    asked = question()
    sent(provider, asked, following="/refunds?correlation_id=x")
    provider_send(
        provider, "refunds", {"following": "/refunds?correlation_id=x", "metadata": {"correlation_id": "x"}}
    )
    looked_up = configured(provider, next_page={"pointer": "/data/0/following"}).look_up(asked)
    assert "circle" in looked_up.detail
    assert looked_up.endless


def test_records_of_others_do_not_match(provider: ProviderProcess) -> None:
    """A provider that ignores the filter answers with everything it has."""
    sent(provider, question(), resource="messages")
    everything = {"url": f"{provider.url}/messages"}
    assert configured(provider, request=everything).look_up(question()).kind is ABSENT


def test_one_object_can_be_asked_for_by_its_request_id(provider: ProviderProcess) -> None:
    asked = question()
    one = {
        "request": {"url": f"{provider.url}/refunds/{{provider_request_id}}"},
        "matches": "",
        "next_page": "left out",
        "absent_status": [404],
    }
    adapter = configured(provider, **one)
    known = replace(asked, provider_request_id=sent(provider, asked))
    assert adapter.look_up(known).records[0].reference == known.provider_request_id
    assert adapter.look_up(replace(asked, provider_request_id="re_none")) == LookedUp(
        ABSENT, canary_seen=True
    )
    provider.set_mode("not_found_for_forbidden")
    assert adapter.look_up(known).canary_seen is False
    assert adapter.look_up(asked).kind is LookedUpKind.NO_LOOKUP


@pytest.mark.parametrize("value", ["..", ".", "", None, True, ["a"]])
def test_a_value_that_would_ask_something_else_is_no_question(
    provider: ProviderProcess, value: object
) -> None:
    request = {"url": f"{provider.url}/refunds/{{args/to}}/x"}
    before = len(provider.requests())
    looked_up = configured(provider, request=request).look_up(question(args={"to": value}))
    assert looked_up.kind is LookedUpKind.NO_LOOKUP
    assert len(provider.requests()) == before


def test_values_cannot_add_to_the_address(provider: ProviderProcess) -> None:
    request = {"url": f"{provider.url}/refunds?to={{args/to}}", "headers": {"X-Key": "{args/to}"}}
    configured(provider, request=request).look_up(question(args={"to": "a/../b?c&d=e#f\r\nX: y"}))
    assert "/refunds?to=a%2F..%2Fb%3Fc%26d%3De%23f%0D%0AX%3A%20y" in provider.requests()


COMPARED: list[tuple[dict[str, str], dict[str, Any], str]] = [
    ({"/amount": "/amount"}, {}, "same"),
    ({"/amount": "/amount"}, {"amount": 1200.0}, "same"),
    ({"/amount": "/amount"}, {"amount": "1200"}, "other"),
    ({"/amount": "/amount"}, {"amount": None}, "other"),
    ({"/amount": "/amount", "/note": "/note"}, {}, "same"),
    ({"/amount": "/amount", "/note": "/note"}, {"note": "x"}, "other"),
    ({"/note": "/note"}, {}, "other"),
    ({"args_hash": "/metadata/args_hash"}, {}, "same"),
    ({"args_hash": "/metadata/other"}, {}, "other"),
    ({"": "/copy"}, {"copy": dict(reversed(ARGS.items()))}, "same"),
    ({"": "/copy"}, {"copy": {**ARGS, "more": 1}}, "other"),
]


@pytest.mark.parametrize(("content", "changed", "same_or_other"), COMPARED, ids=str)
def test_content_is_compared_as_canonical_json(
    provider: ProviderProcess, content: dict[str, str], changed: dict[str, Any], same_or_other: str
) -> None:
    asked = question()
    sent(provider, asked, **changed)
    (record,) = configured(provider, content=content).look_up(asked).records
    assert record.content == same_or_other


def test_arguments_known_by_hash_only_are_compared_by_hash(provider: ProviderProcess) -> None:
    asked = question(args=None)
    sent(provider, asked)
    assert configured(provider).look_up(asked).kind is LookedUpKind.NO_LOOKUP
    by_hash = configured(provider, content={"args_hash": "/metadata/args_hash"})
    assert by_hash.look_up(asked).records[0].content == "same"


def test_a_large_record_is_kept_in_part(provider: ProviderProcess) -> None:
    asked = question()
    reference = sent(provider, asked, text="x" * 5_000)
    (record,) = configured(provider).look_up(asked).records
    assert record.data == {
        "/id": reference,
        "/status": "succeeded",
        "/amount": "1200",
        "/currency": "EUR",
        "/charge": "ch_7",
    }


def test_too_large_an_answer_is_unavailable(provider: ProviderProcess) -> None:
    asked = question()
    sent(provider, asked, text="x" * 70_000)
    assert "64 kB" in configured(provider).look_up(asked).detail


def test_things_without_a_status_are_always_something(provider: ProviderProcess) -> None:
    asked = question()
    sent(provider, asked)
    (record,) = configured(provider, state={"always": "done"}).look_up(asked).records
    assert record.state == "done"


def test_a_wrong_secret_is_unavailable_and_shown_nowhere(
    provider: ProviderProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_DEMO_TOKEN", "wrong-secret")
    adapter = configured(provider)
    looked_up = adapter.look_up(question())
    assert looked_up.kind is UNAVAILABLE
    assert "401" in looked_up.detail
    assert "wrong-secret" not in repr(adapter) + repr(looked_up)


def test_an_unsendable_secret_is_an_error_that_does_not_quote_it(
    provider: ProviderProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_DEMO_TOKEN", "two\nlines")
    with pytest.raises(AddressRefused) as raised:
        configured(provider).look_up(question())
    assert "lines" not in str(raised.value)


def test_a_missing_secret_names_what_to_set(
    provider: ProviderProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROVIDER_DEMO_TOKEN")
    with pytest.raises(AdapterMisconfigured, match="'payments', /auth/env: PROVIDER_DEMO_TOKEN is not set"):
        configured(provider)


def test_an_address_inside_is_refused_aloud(provider: ProviderProcess, settings: Any) -> None:
    settings.LEDGER_PRIVATE_NETS = ()
    with pytest.raises(AddressRefused, match="LEDGER_PRIVATE_NETS"):
        configured(provider).look_up(question())


def test_the_documented_configuration_is_not_changed_by_use(provider: ProviderProcess) -> None:
    config = documented()
    before = copy.deepcopy(config)
    adapter_for(SimpleNamespace(name="payments", adapter="http", config=config))
    assert config == before
