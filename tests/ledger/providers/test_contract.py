"""Every adapter, put through the contract before a real provider of its kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from ledger.providers import Adapter, Question, adapter_for
from tests.ledger.providers.contract import AdapterContract, Stage
from tests.support import localstripe
from tests.support.localstripe import LocalStripe
from tests.support.provider import ProviderProcess
from tests.support.proxy import Fault, Proxy, Reply, Request, altered, answering


class HttpStage(Stage):
    """The demo's provider."""

    tool = "refund"
    args = {"amount": 1200, "currency": "EUR", "charge": "ch_7"}
    secret = "provider-secret"

    def adapter(self) -> Adapter:
        config = {
            "request": {"url": f"{self.proxy.url}/refunds?correlation_id={{correlation_id}}&limit=2"},
            "auth": {"env": "PROVIDER_DEMO_TOKEN"},
            "matches": "/data",
            "match_where": {"/metadata/correlation_id": "{correlation_id}"},
            "reference": "/id",
            "state": {"pointer": "/status", "done": ["succeeded"]},
            "content": {"/amount": "/amount", "/charge": "/charge"},
            "next_page": {"pointer": "/next"},
            "canary": {
                "request": {"url": f"{self.proxy.url}/refunds/canary"},
                "pointer": "/id",
                "value": "canary",
            },
            "rate_per_s": 1000,
        }
        return adapter_for(SimpleNamespace(name="demo", adapter="http", config=config))

    def effect(self, question: Question, args: Mapping[str, Any]) -> str:
        body = {**args, "metadata": {"correlation_id": question.correlation_id}}
        return str(self.provider._call("POST", "/refunds", body, self.authorization)["id"])

    def other_args(self) -> Mapping[str, Any]:
        return {**self.args, "amount": 1201}

    def with_status(self, document: Any, word: str) -> Any:
        return {**document, "data": [{**record, "status": word} for record in document["data"]]}

    def without_end(self, document: Any, number: int) -> Any:
        return {**document, "data": [], "next": f"/refunds?page={number}"}

    def of_another_account(self) -> Fault:
        def empty(request: Request, document: Any) -> Any:
            return {"data": [], "next": None} if "data" in document else {"id": "another"}

        return altered(empty)

    authorization = {"Authorization": f"Bearer {secret}"}
    provider: ProviderProcess


class StripeStage(Stage):
    """localstripe: real charges, listed the way it lists them."""

    tool = "charge.create"
    secret = localstripe.SECRET
    stripe: LocalStripe
    canary: str

    def adapter(self) -> Adapter:
        content = {"/amount": "/amount", "/currency": "/currency", "/source": "/payment_method"}
        config = {
            "api": self.proxy.url,
            "auth": {"env": "PROVIDER_STRIPE_KEY"},
            "objects": {self.tool: {"kind": "charges", "content": content}},
            "canary": {"kind": "charges", "id": self.canary},
            "page_size": 2,
            "rate_per_s": 1000,
        }
        return adapter_for(SimpleNamespace(name="stripe", adapter="stripe", config=config))

    def effect(self, question: Question, args: Mapping[str, Any]) -> str:
        metadata = {"correlation_id": question.correlation_id}
        return str(self.stripe.post("charges", **args, metadata=metadata)["id"])

    def other_args(self) -> Mapping[str, Any]:
        return {**self.args, "amount": 1201}

    def with_status(self, document: Any, word: str) -> Any:
        return {**document, "data": [{**record, "status": word} for record in document["data"]]}

    def without_end(self, document: Any, number: int) -> Any:
        return {**document, "data": [{"id": f"ch_{number}", "object": "charge"}], "has_more": True}

    def of_another_account(self) -> Fault:
        nothing = answering(200, b'{"object": "list", "data": [], "has_more": false}')
        unknown = answering(404)

        def fault(request: Request, ask: Any) -> Reply | None:
            return (nothing if "?" in request.target else unknown)(request, ask)

        return fault


class TestHttp(AdapterContract):
    @pytest.fixture
    def stage(self, provider: ProviderProcess) -> Iterator[Stage]:
        with Proxy(provider.url) as proxy:
            stage = HttpStage(proxy)
            stage.provider = provider
            yield stage


class TestStripe(AdapterContract):
    @pytest.fixture
    def stage(self, stripe: LocalStripe) -> Iterator[Stage]:
        source = stripe.card()
        with Proxy(stripe.url) as proxy:
            stage = StripeStage(proxy)
            stage.stripe, stage.args = stripe, {"amount": 1200, "currency": "EUR", "source": source}
            stage.canary = stripe.post("charges", amount=1, currency="eur", source=source)["id"]
            yield stage
