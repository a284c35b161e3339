"""Every mistake in a provider's configuration is named with its place, before anything is asked."""

from types import SimpleNamespace
from typing import Any

import pytest

from ledger.providers import AdapterMisconfigured, adapter_for, check_configuration

GOOD: dict[str, Any] = {
    "request": {"url": "https://p.test/refunds?c={correlation_id}"},
    "matches": "/data",
    "reference": "/id",
    "state": {"pointer": "/status", "done": ["ok"]},
    "content": {"/amount": "/amount"},
}
CANARY = {"request": {"url": "https://p.test/refunds/canary"}, "pointer": "/id", "value": "canary"}
SEND: dict[str, Any] = {"url": "https://p.test/refunds", "body": {"c": ["{correlation_id}", "{args/n}"]}}


def test_the_least_there_can_be() -> None:
    check_configuration("http", GOOD)


def test_everything_there_can_be() -> None:
    more = {
        "auth": {"env": "PROVIDER_X", "header": "X-Token", "prefix": ""},
        "match_where": {"/c": "{correlation_id}"},
        "next_page": {"pointer": "/next", "parameter": "page"},
        "canary": CANARY,
        "rate_per_s": 0.5,
        "max_pages": 3,
        "absent_status": [404, 410],
        "send": {
            **SEND,
            "method": "PUT",
            "headers": {"Idempotency-Key": "{idempotency_key}"},
            "accepted": [200, 202],
            "no_effect": {"404": "refused", "409": "refused"},
            "answer": {
                "record": "/data",
                "reference": "/number",
                "request_id": "/request",
                "state": {"always": "done"},
                "content": {},
            },
        },
    }
    check_configuration("http", {**GOOD, **more})


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"request": None}, "/request: an object"),
    ({"request": {}}, "/request/url: a printable text"),
    ({"request": {"url": "p.test/x"}}, "/request/url: an address"),
    ({"request": {"url": "ftp://p.test/x"}}, "/request/url: an address"),
    ({"request": {"url": "https://{args/host}/x"}}, "/request/url: host and port are fixed"),
    ({"request": {"url": "https://u:p@p.test/x"}}, "/request/url: host and port are fixed"),
    ({"request": {"url": "https://p.test/#x"}}, "/request/url: an address"),
    ({"request": {"url": "https://p.test/\n"}}, "/request/url: a printable text"),
    ({"request": {"url": "https://p.test/{secret}"}}, "/request/url: {secret} is no placeholder"),
    ({"request": {"url": "https://p.test/{__class__}"}}, "/request/url: {__class__} is no placeholder"),
    ({"request": {"url": "https://p.test/{args}"}}, "/request/url: {args} is no placeholder"),
    ({"request": {"url": "https://p.test/{correlation_id"}}, "/request/url: a brace stands alone"),
    ({"request": {"url": "https://p.test/", "method": "POST"}}, "/request/method: a look-up only reads"),
    ({"request": {"url": "https://p.test/", "body": {}}}, "/request/body: no such field"),
    (
        {"request": {"url": "https://p.test/", "headers": {"Authorization": "x"}}},
        "secrets are not stored here",
    ),
    ({"request": {"url": "https://p.test/", "headers": {"a b": "x"}}}, "/request/headers/a b: not a header"),
    ({"auth": {}}, "/auth/env: a printable text"),
    ({"auth": {"env": "LEDGER_SECRET_KEY"}}, "/auth/env: the name of an environment variable"),
    ({"auth": {"env": "DATABASE_URL"}}, "/auth/env: the name of an environment variable"),
    ({"auth": {"env": "PROVIDER_X", "header": "a:b"}}, "/auth/header: not a header"),
    ({"auth": {"env": "PROVIDER_X", "token": "t"}}, "/auth/token: no such field"),
    ({"matches": "data"}, "/matches: a pointer"),
    ({"matches": None}, "/matches: a pointer"),
    ({"reference": ""}, "/reference: a pointer"),
    ({"state": {"pointer": "/s"}}, "/state/done: at least one word"),
    ({"state": {"pointer": "/s", "done": "ok"}}, "/state/done: a list"),
    (
        {"state": {"pointer": "/s", "done": ["ok"], "failed": ["ok"]}},
        "/state/failed: 'ok' already means done",
    ),
    ({"state": {"pointer": "/s", "done": ["ok"], "lost": ["x"]}}, "/state/lost: no such field"),
    ({"state": {"always": "perhaps"}}, "/state/always: one of"),
    ({"content": {}}, "/content: name at least one"),
    ({"content": {"amount": "/amount"}}, "/content/amount: a pointer"),
    ({"content": {"/amount": "amount"}}, "/content/~1amount: a pointer"),
    ({"match_where": {"c": "x"}}, "/match_where/c: a pointer"),
    ({"match_where": {"/c": "{x}"}}, "/match_where/~1c: {x} is no placeholder"),
    ({"next_page": {"pointer": "next"}}, "/next_page/pointer: a pointer"),
    ({"next_page": {"header": "X-Next"}}, '/next_page/header: only "Link"'),
    ({"next_page": {"header": "Link", "pointer": "/next"}}, "/next_page/pointer: no such field"),
    ({"match_inside": {"/c": "{x}"}}, "/match_inside/~1c: {x} is no placeholder"),
    ({"canary": {**CANARY, "request": {"url": "https://p.test/{operation_key}"}}}, "no placeholders"),
    ({"canary": {**CANARY, "value": None}}, "/canary/value: the text or number"),
    ({"absent_status": [404]}, "/absent_status: a 404 may also mean"),
    ({"absent_status": [403], "canary": CANARY}, "/absent_status: only 404 and 410"),
    ({"absent_status": 404, "canary": CANARY}, "/absent_status: only 404 and 410"),
    ({"rate_per_s": 0}, "/rate_per_s: a number from"),
    ({"rate_per_s": True}, "/rate_per_s: a number from"),
    ({"max_pages": 101}, "/max_pages: a number from 1 to 100"),
    ({"extra": 1}, "/extra: no such field"),
    ({"send": {}}, "/send/url: a printable text"),
    ({"send": {**SEND, "method": "GET"}}, "/send/method: one of POST"),
    ({"send": {**SEND, "body": {"a": ["{x}"]}}}, "/send/body: {x} is no placeholder"),
    ({"send": {**SEND, "body": {"a": "all of {args}"}}}, "/send/body: {args} is no placeholder"),
    ({"send": {**SEND, "headers": {"Authorization": "x"}}}, "/send/headers/Authorization: secrets"),
    ({"send": {**SEND, "accepted": []}}, "/send/accepted: a list of statuses"),
    ({"send": {**SEND, "accepted": [302]}}, "/send/accepted: a list of statuses"),
    ({"send": {**SEND, "no_effect": {"500": "refused"}}}, "/send/no_effect/500: this status does not prove"),
    ({"send": {**SEND, "no_effect": {"408": "refused"}}}, "/send/no_effect/408: this status does not prove"),
    ({"send": {**SEND, "no_effect": {"x": "refused"}}}, "/send/no_effect/x: this status does not prove"),
    ({"send": {**SEND, "no_effect": {"400": "reset"}}}, "/send/no_effect/400: one of validation"),
    ({"send": {**SEND, "answer": {"record": "data"}}}, "/send/answer/record: a pointer"),
    ({"send": {**SEND, "answer": {"sate": {}}}}, "/send/answer/sate: no such field"),
    ({"send": {**SEND, "again": 3}}, "/send/again: no such field"),
    ({"send": {"url": "https://p.test/refunds", "body": "{args}"}}, "/send: send {correlation_id} or"),
]


@pytest.mark.parametrize(("changed", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_a_mistake_is_named_with_its_place(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(AdapterMisconfigured) as raised:
        check_configuration("http", {**GOOD, **changed})
    assert words in str(raised.value)


@pytest.mark.parametrize("config", [None, [], "x", 5])
def test_no_object_is_no_configuration(config: object) -> None:
    with pytest.raises(AdapterMisconfigured, match="/: an object"):
        check_configuration("http", config)


def test_a_missing_adapter_names_provider_and_choice() -> None:
    with pytest.raises(AdapterMisconfigured, match=r"'bank' names the adapter 'soap'.*use http"):
        adapter_for(SimpleNamespace(name="bank", adapter="soap", config={}))


def test_a_stored_mistake_names_its_provider() -> None:
    with pytest.raises(AdapterMisconfigured, match="provider 'bank', /extra: no such field"):
        adapter_for(SimpleNamespace(name="bank", adapter="http", config={**GOOD, "extra": 1}))
