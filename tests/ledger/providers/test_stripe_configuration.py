"""Every mistake in a stripe configuration is named with its place, before anything is asked."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.providers import AdapterMisconfigured, check_configuration

REFUND = {"kind": "refunds", "content": {"/amount": "/amount"}}
GOOD: dict[str, Any] = {
    "auth": {"env": "PROVIDER_STRIPE_KEY"},
    "objects": {"refund.create": REFUND},
    "canary": {"kind": "charges", "id": "ch_1"},
}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"api": "http://127.0.0.1:8420"},
        {"account": "acct_7", "metadata": "ledger.id", "authorised": "done"},
        {"margin_s": None, "page_size": 100, "max_pages": 1, "rate_per_s": 0.5},
        {"margin_s": 0},
    ],
    ids=str,
)
def test_what_can_be_stored(more: dict[str, Any]) -> None:
    check_configuration("stripe", {**GOOD, **more})


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"auth": None}, "/auth: an object"),
    ({"auth": {"env": "SECRET_KEY"}}, "/auth/env: the name of an environment variable"),
    ({"auth": {"env": "PROVIDER_X", "header": "X"}}, "/auth/header: no such field"),
    ({"objects": None}, "/objects: an object"),
    ({"objects": {}}, "/objects: name at least one tool"),
    ({"objects": {"refund.create": "refunds"}}, "/objects/refund.create: an object"),
    ({"objects": {"a/b": {**REFUND, "kind": "payouts"}}}, "/objects/a~1b/kind: one of charges, refunds"),
    ({"objects": {"x": {"kind": "refunds"}}}, "/objects/x/content: an object"),
    ({"objects": {"x": {**REFUND, "content": {}}}}, "/objects/x/content: name at least one"),
    ({"objects": {"x": {**REFUND, "content": {"amount": "/a"}}}}, "/objects/x/content/amount: a pointer"),
    ({"objects": {"x": {**REFUND, "extra": 1}}}, "/objects/x/extra: no such field"),
    ({"canary": None}, "/canary: an object"),
    ({"canary": {"kind": "charges"}}, "/canary/id: a printable text"),
    ({"canary": {"kind": "charges", "id": "../x"}}, "/canary/id: the id of something"),
    ({"canary": {"kind": ["charges"], "id": "ch_1"}}, "/canary/kind: one of"),
    ({"canary": {"kind": "charges", "id": "ch_1", "x": 1}}, "/canary/x: no such field"),
    ({"api": "api.stripe.com"}, "/api: an address"),
    ({"api": "ftp://api.stripe.com"}, "/api: an address"),
    ({"api": "https://api.stripe.com/v1"}, "/api: an address"),
    ({"api": "https://api.stripe.com?x=1"}, "/api: an address"),
    ({"api": "https://u:p@api.stripe.com"}, "/api: an address"),
    ({"api": None}, "/api: a printable text"),
    ({"account": "7"}, "/account: a connected account"),
    ({"account": ""}, "/account: a connected account"),
    ({"metadata": "x" * 41}, "/metadata: a metadata key"),
    ({"metadata": "a[b]"}, "/metadata: a metadata key"),
    ({"authorised": "failed"}, "/authorised: done or in_progress"),
    ({"margin_s": -1}, "/margin_s: a number from 0"),
    ({"margin_s": "1"}, "/margin_s: a number from 0"),
    ({"page_size": 101}, "/page_size: a number from 1 to 100"),
    ({"page_size": None}, "/page_size: a number from 1 to 100"),
    ({"max_pages": 0}, "/max_pages: a number from 1 to 100"),
    ({"rate_per_s": 0}, "/rate_per_s: a number from"),
    ({"extra": 1}, "/extra: no such field"),
]


@pytest.mark.parametrize(("changed", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_a_mistake_is_named_with_its_place(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(AdapterMisconfigured) as raised:
        check_configuration("stripe", {**GOOD, **changed})
    assert words in str(raised.value)
