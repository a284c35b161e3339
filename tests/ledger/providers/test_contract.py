"""Every adapter, put through the contract before a real provider of its kind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ledger.providers import Adapter, Question, adapter_for
from ledger.rules.looked_up import LookedUpKind
from tests.ledger.providers.contract import AdapterContract, Stage
from tests.support import github, localstripe
from tests.support.github import Tracker
from tests.support.localstripe import LocalStripe
from tests.support.provider import ProviderProcess
from tests.support.proxy import Fault, Proxy, Reply, Request, altered, answering


def documented_configuration(heading: str) -> dict[str, Any]:
    """The first configuration the documentation shows below this heading, as it stands there."""
    page = (Path(__file__).parents[3] / "docs" / "adapters.md").read_text()
    found = re.search(rf"{re.escape(heading)}\n.*?```json\n(.*?)```", page, re.DOTALL)
    assert found is not None
    config: dict[str, Any] = json.loads(found[1])
    return config


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


class GithubStage(Stage):
    """Issues, as the documentation configures them."""

    tool = "issue.open"
    args = {"owner": "acme", "repo": "tracker", "title": "Printer on fire", "body": "Again."}
    secret = github.TOKEN
    tracker: Tracker

    def adapter(self) -> Adapter:
        shown = json.dumps(documented_configuration("## `http`: issues at GitHub"))
        config = json.loads(shown.replace("https://api.github.com", self.proxy.url))
        config["request"]["url"] = config["request"]["url"].replace("per_page=10", "per_page=2")
        return adapter_for(
            SimpleNamespace(name="github", adapter="http", config={**config, "rate_per_s": 1000})
        )

    def effect(self, question: Question, args: Mapping[str, Any]) -> str:
        body = f"{args['body']}\n\n<!-- {question.correlation_id} -->"
        return str(self.tracker.open_issue(args["title"], body))

    def other_args(self) -> Mapping[str, Any]:
        return {**self.args, "title": "Printer off"}

    def with_status(self, document: Any, word: str) -> Any:
        return [{**issue, "state": word} for issue in document]

    def without_end(self, document: Any, number: int) -> Any:
        return [{**issue, "number": number} for issue in document]

    def of_another_account(self) -> Fault:
        return answering(404)


class TestGithub(AdapterContract):
    @pytest.fixture
    def stage(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
        monkeypatch.setenv("PROVIDER_GITHUB_TOKEN", github.TOKEN)
        with Tracker() as tracker, Proxy(tracker.url) as proxy:
            stage = GithubStage(proxy)
            stage.tracker = tracker
            yield stage

    def test_a_status_nobody_knows_is_in_progress_and_named(self, stage: Stage) -> None:
        """There is no status: what is there was opened, whatever became of it."""
        asked, _ = stage.sent()
        strange = altered(lambda _, document: stage.with_status(document, "quiescent"))
        assert [record.state for record in stage.ask(asked, strange).records] == ["done"]

    def test_a_listing_without_end_is_unavailable(self, stage: Stage) -> None:
        def endless(request: Request, ask: Any) -> Reply:
            link = f'<{stage.proxy.url}/repos/acme/tracker/issues?page={request.number}>; rel="next"'
            return Reply(200, b"[]", {"Link": link})

        assert stage.ask(stage.question(), endless).kind is LookedUpKind.UNAVAILABLE

    @pytest.mark.parametrize("link", ["next", "<>; rel=next", '<http://127.0.0.1:1/x>; rel="next"'], ids=str)
    def test_a_link_that_cannot_be_followed_is_unavailable(self, stage: Stage, link: str) -> None:
        looked_up = stage.ask(stage.question(), lambda *_: Reply(200, b"[]", {"Link": link}))
        assert looked_up.kind is LookedUpKind.UNAVAILABLE

    def test_a_403_about_how_often_is_not_about_the_key(self, stage: Stage) -> None:
        limited = answering(403, b'{"message": "You have exceeded a secondary rate limit"}', Retry_After="5")
        looked_up = stage.ask(stage.question(), limited)
        assert (looked_up.kind, looked_up.refused_credential) == (LookedUpKind.UNAVAILABLE, "")
        assert stage.requests_of(stage.question()) == [], "it was asked again before its time"

    @pytest.mark.parametrize("status", [401, 403])
    def test_a_refused_token_is_named(self, stage: Stage, status: int) -> None:
        looked_up = stage.ask(stage.question(), answering(status))
        assert (looked_up.kind, looked_up.refused_credential) == (
            LookedUpKind.UNAVAILABLE,
            "PROVIDER_GITHUB_TOKEN",
        )

    def test_a_404_that_means_403_is_never_absent(self, stage: Stage) -> None:
        assert stage.ask(stage.question(), answering(404)).kind is LookedUpKind.UNAVAILABLE

    def test_an_operation_nobody_knows_the_time_of_is_for_a_person(self, stage: Stage) -> None:
        assert stage.ask(stage.question(first_sent_at=None)).kind is LookedUpKind.NO_LOOKUP


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
